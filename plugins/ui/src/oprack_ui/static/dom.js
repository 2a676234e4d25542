// Small helpers: elements, tables, and questions to the server. Text is set as text, never as HTML.

export const byId = (id) => document.getElementById(id);

/** An element with properties and children; children are elements or text. */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/** A table; cells are elements or text. numbers: columns that hold numbers. style: gives a row's class. */
export function table(heads, rows, { numbers = [], style = () => "" } = {}) {
  const kind = (i) => (numbers.includes(i) ? "number" : "");
  const head = element("tr", {}, ...heads.map((text, i) => element("th", { className: kind(i) }, text)));
  const body = rows.map((row, k) =>
    element("tr", { className: style(k) }, ...row.map((cell, i) => element("td", { className: kind(i) }, cell ?? ""))),
  );
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...body));
}

export const code = (text) => element("code", {}, String(text));

/** What the server answers; an error is shown on the page and thrown. */
export async function ask(path, body) {
  const options = body === undefined ? {} : {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  };
  let text = "the server does not answer; is `oprack ui` still running?";
  try {
    const answer = await fetch(path, options);
    const value = await answer.json();
    if (answer.ok) {
      byId("error").hidden = true;
      return value;
    }
    text = value.error ?? answer.statusText;
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
  }
  byId("error").textContent = text;
  byId("error").hidden = false;
  throw new Error(text);
}
