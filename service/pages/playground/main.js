/** The start of the page: it reads the models, opens a task, and keeps the state in the address. */

import { models } from "./api.js";
import { ClassifyView } from "./classify.js";
import { readHash, writeHash } from "./hash.js";
import { Notice } from "./notice.js";
import { tabbed } from "./tabs.js";
import { TranslateView } from "./translate.js";

const VIEWS = { translate: TranslateView, classify: ClassifyView };
const TASKS = { translate: "translation", classify: "classification" };

async function start() {
  const notice = new Notice(document.getElementById("start-notice"), start);
  let all;
  try {
    all = await models();
  } catch (error) {
    notice.show(error);
    addEventListener("online", start);
    return;
  }
  notice.hide();
  removeEventListener("online", start);
  open(all);
}

/** Returns whether a model gives a pair of texts one score, so that one text alone says nothing. */
function isReranker({ pairs, labels }) {
  return pairs && labels.length === 1;
}

/** Whether a model writes texts of no certain language, such as summaries, and so is no translator. */
function isTextToText({ targets }) {
  return targets.length === 1 && targets[0] === "und";
}

/** @param {import("./types.js").Model[]} all */
function open(all) {
  const views = {};
  let current = "";
  let restoring = false;
  const keep = () => {
    if (!restoring) writeHash(current, views[current].state);
  };
  for (const [name, View] of Object.entries(VIEWS)) {
    const able = all.filter((model) => model.task === TASKS[name] && !isReranker(model) && !isTextToText(model));
    const tab = document.getElementById(`tab-${name}`);
    tab.hidden = able.length === 0;
    if (able.length > 0) views[name] = new View(document.getElementById(name), able, keep);
  }
  const tabs = Object.keys(views).map((name) => document.getElementById(`tab-${name}`));
  const choose = tabbed(tabs, (name) => {
    current = name;
    keep();
  });
  const restore = (written = {}) => {
    const { view, state } = readHash();
    const name = view in views ? view : Object.keys(views)[0];
    if (written[name]) state.set("text", written[name]);
    restoring = true;
    views[name].restore(state);
    choose(name);
    restoring = false;
  };
  // A visitor may have written a text before the page knew the models.
  const written = Object.fromEntries(Object.entries(views).map(([name, { text }]) => [name, text]));
  restoring = true;
  for (const view of Object.values(views)) view.restore(new URLSearchParams());
  restore(written);
  addEventListener("hashchange", () => restore());
}

start();
