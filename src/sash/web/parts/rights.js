/** What a person may do in a session, by the scopes of the sign-in and by the policy of the session. */

/**
 * Return {mayTalk, mayChange, mayWrite, mayApprove, mayAct, mayPin}.
 *
 * `mayChange` is false in a session that may act if the person may not. `mayWrite` is also false in a session that has
 * ended. `mayPin` is about the pins of all conversations.
 */
export function findRights(me, session) {
  const has = (scope) => !me?.scopes || me.scopes.includes(scope);
  const isForAll = me?.policy?.approvers === "owner" && session?.policy.approvers === "owner";
  const mayTalk = has("converse");
  const mayChange = mayTalk && (has("act") || !session?.policy.allow_actuation);
  return {
    mayTalk,
    mayChange,
    mayWrite: mayChange && (session?.status ?? "active") === "active",
    mayApprove: has("act") || (mayTalk && isForAll),
    mayAct: mayTalk && has("act"),
    mayPin: me?.may_pin ?? mayTalk,
  };
}
