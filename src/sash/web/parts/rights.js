/** What a person may do in a session, by the scopes of the sign-in and by the policy of the session. */

/** Return {mayTalk, mayWrite, mayApprove}. `mayWrite` is false in a session that has ended, and in one that may act if the person may not. */
export function findRights(me, session) {
  const has = (scope) => !me?.scopes || me.scopes.includes(scope);
  const isForAll = me?.policy?.approvers === "owner" && session?.policy.approvers === "owner";
  return {
    mayTalk: has("converse"),
    mayWrite: has("converse") && (session?.status ?? "active") === "active" && (has("act") || !session?.policy.allow_actuation),
    mayApprove: has("act") || (has("converse") && isForAll),
  };
}
