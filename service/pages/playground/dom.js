/** Helpers that every part of the page uses. */

/**
 * Returns a new element.
 *
 * @param {string} name
 * @param {Record<string, unknown>} [properties]  Names with a dash are attributes.
 * @param {...(Node | string)} children
 * @returns {HTMLElement}
 */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.includes("-") || key === "role" || key === "for") made.setAttribute(key, String(value));
    else made[key] = value;
  }
  made.append(...children);
  return made;
}

/**
 * Returns the elements below a root that have a data-part attribute, by its value.
 *
 * @param {ParentNode} root
 * @returns {Record<string, any>}
 */
export function parts(root) {
  return Object.fromEntries([...root.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
}

/**
 * Puts the content of a template into a box.
 *
 * @param {Element} box
 * @param {string} id
 */
export function fill(box, id) {
  box.replaceChildren(/** @type {HTMLTemplateElement} */ (document.getElementById(id)).content.cloneNode(true));
}

let announcing = 0;

/**
 * Lets a screen reader say a text, if no newer one follows for a while.
 *
 * @param {string} text
 * @param {number} [patience]  Milliseconds.
 */
export function announce(text, patience = 0) {
  clearTimeout(announcing);
  announcing = setTimeout(() => (document.getElementById("announcer").textContent = text), patience);
}

/**
 * Copies a text, also if the page was not loaded over a secure connection, and says so on the button.
 *
 * @param {HTMLElement} button
 * @param {() => string} text
 */
export function copies(button, text) {
  const label = button.textContent;
  let resting = 0;
  button.addEventListener("click", async () => {
    const done = await copy(text());
    button.textContent = done ? "Copied" : "Copying is not allowed";
    announce(button.textContent);
    clearTimeout(resting);
    resting = setTimeout(() => (button.textContent = label), 1600);
  });
}

/** @param {string} text */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const focused = /** @type {HTMLElement} */ (document.activeElement);
    const carrier = /** @type {HTMLTextAreaElement} */ (element("textarea", { className: "sr-only", value: text }));
    document.body.append(carrier);
    carrier.select();
    const done = document.execCommand("copy");
    carrier.remove();
    focused?.focus();
    return done;
  }
}
