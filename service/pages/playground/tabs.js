/** Tabs as in the ARIA Authoring Practices: the Tab key stops once, arrow keys choose. */

/**
 * @param {HTMLElement[]} tabs
 * @param {(panel: string) => void} chosen
 * @returns {(panel: string) => void}  Chooses a tab.
 */
export function tabbed(tabs, chosen) {
  const choose = (panel) => {
    for (const tab of tabs) {
      const selected = tab.getAttribute("aria-controls") === panel;
      tab.setAttribute("aria-selected", String(selected));
      tab.tabIndex = selected ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = !selected;
    }
    chosen(panel);
  };
  tabs.forEach((tab, i) => {
    tab.addEventListener("click", () => choose(tab.getAttribute("aria-controls")));
    tab.addEventListener("keydown", (event) => {
      const places = { ArrowRight: i + 1, ArrowLeft: i - 1, Home: 0, End: tabs.length - 1 };
      if (!(event.key in places)) return;
      event.preventDefault();
      const next = tabs.at(places[event.key] % tabs.length);
      next.focus();
      choose(next.getAttribute("aria-controls"));
    });
  });
  return choose;
}
