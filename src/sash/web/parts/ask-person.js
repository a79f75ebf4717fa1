/** A question to the person before something that cannot be taken back. */

import { html, render } from "../vendor/lit.js";
import { t } from "../text.js";

/**
 * Ask in a dialog inside `host`. Return true if the person agrees.
 *
 * `action` are the words of the button that agrees. With `isDanger` it is marked as dangerous.
 */
export function askPerson(host, question, action, { isDanger = false } = {}) {
  const dialog = document.createElement("dialog");
  host.append(dialog);
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    const content = html`<form method="dialog" aria-label=${question}>
      <p>${question}</p>
      <div class="row">
        <button value="yes" class=${isDanger ? "danger" : "primary"}>${action}</button>
        <button value="no" autofocus>${t("cancel")}</button>
      </div>
    </form>`;
    render(content, dialog);
    dialog.showModal();
  });
}
