/** Groups the messages of a transcript into turns. */

/**
 * Return the turns of a page of messages, oldest first: {id, position, message, attachments, answer, calls,
 * isEvicted, isLocal, isCopy, created_at}. `message` is null if the page begins in the middle of a turn. A copy
 * came with a fork, and has no continuation.
 */
export function groupMessages(messages) {
  const turns = new Map();
  let last = null;
  for (const message of messages) {
    // Messages that were added without a turn belong to the user's message before them.
    const isNew = message.role === "user" || last === null;
    const id = message.continuation_id ?? (isNew ? message.id : last);
    last = id;
    if (!turns.has(id)) turns.set(id, startTurn(id, message));
    addMessage(turns.get(id), message);
  }
  return [...turns.values()];
}

function startTurn(id, { position, timestamp, tags, continuation_id: turnId }) {
  const marks = { isEvicted: true, isLocal: tags.includes("local_intent"), isCopy: turnId === null };
  return { id, position, message: null, attachments: [], answer: undefined, calls: [], ...marks, created_at: timestamp };
}

function addMessage(turn, message) {
  turn.isEvicted &&= !message.in_window;
  const { text, media } = splitContent(message.content);
  if (message.role === "user") {
    turn.message = turn.message === null ? text : `${turn.message}\n${text}`;
    turn.attachments = media;
  } else if (message.role === "tool") {
    const call = turn.calls.find((each) => each.id === message.tool_call_id);
    if (call) call.result = text;
  } else if (message.role === "assistant") {
    for (const { id, function: called } of message.tool_calls) {
      turn.calls.push({ id, name: called.name, arguments: called.arguments, result: null });
    }
    if (!message.tool_calls.length) turn.answer = text;
  }
}

function splitContent(content) {
  if (!Array.isArray(content)) return { text: content ?? "", media: [] };
  const text = content.filter((part) => part.type === "text").map((part) => part.text);
  return { text: text.join("\n"), media: content.filter((part) => part.type !== "text") };
}
