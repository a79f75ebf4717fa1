/** Reads tables from files: CSV, or JSON that is a list of objects or of lists. */

// A person reads no more. The file can be downloaded.
const MAX_ROWS = 50;
const MAX_COLUMNS = 50;

/** Return the first {columns, rows} of texts and the number of all rows, or null if the file is not a table. */
export function parseTable(type, text) {
  return type.startsWith("text/csv") ? makeTable(parseCsv(text)) : parseJsonTable(text);
}

function parseJsonTable(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (!Array.isArray(value)) value = Object.values(value ?? {}).find((each) => Array.isArray(each) && each.length > 1);
  if (!Array.isArray(value) || !value.length || value.some((row) => typeof row !== "object" || row === null)) return null;
  if (value.every(Array.isArray)) return makeTable(value.map((row) => row.slice(0, MAX_COLUMNS).map(write)));
  const shown = value.slice(0, MAX_ROWS);
  const columns = [...new Set(shown.flatMap(Object.keys))].slice(0, MAX_COLUMNS);
  return { columns, rows: shown.map((row) => columns.map((column) => write(row[column]))), rowCount: value.length };
}

function makeTable([columns, ...rows]) {
  if (!columns?.length || !rows.length) return null;
  return { columns: columns.slice(0, MAX_COLUMNS), rows: rows.slice(0, MAX_ROWS), rowCount: rows.length };
}

function write(value) {
  if (value === null || value === undefined) return "";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** Return the rows of a CSV text. A quoted value may have commas, line breaks and doubled quotes. */
function parseCsv(text) {
  const rows = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1).push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === "") break;
    if (end !== ",") rows.push([]);
  }
  return rows.filter((row) => row.some((value) => value !== ""));
}
