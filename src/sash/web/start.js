/** Starts the page in a browser tab: finds the server, and asks for a token if the server wants one. */

import { Connection } from "./connection.js";
import { chooseLanguage, getLanguage, loadLanguage } from "./text.js";
import "./app.js";

const TOKEN_KEY = "sash.token";

// The page may be below a path prefix, so every address is relative to the document.
const base = new URL("./", document.baseURI);
let token = sessionStorage.getItem(TOKEN_KEY);

function send(path, options = {}) {
  const headers = new Headers(options.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  return fetch(new URL(path, base), { ...options, headers, cache: "no-store", credentials: "same-origin" });
}

await loadLanguage(chooseLanguage(navigator.languages));
document.documentElement.lang = getLanguage();
const app = document.createElement("sash-app");
app.connection = new Connection(send);
app.addEventListener("sash-token", (event) => {
  token = event.detail;
  // The token stays in this tab, and is gone when the tab is closed.
  if (token) sessionStorage.setItem(TOKEN_KEY, token);
  else sessionStorage.removeItem(TOKEN_KEY);
});
document.body.append(app);
