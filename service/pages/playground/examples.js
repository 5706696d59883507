/** Example texts, shown while there is no text. */

import { element } from "./dom.js";

/** The examples by source language. */
export const TO_TRANSLATE = {
  en: [
    "A little girl in a red dress is feeding the ducks by the lake.",
    "I don't know where the station is. Can you help me?",
    "She has been working here for three years, and she still likes it.",
    "Two dogs play in the snow.\nTheir owner is drinking a cup of coffee.",
  ],
  fr: [
    "Une petite fille en robe rouge donne à manger aux canards.",
    "Je ne sais pas où est la gare. Pouvez-vous m'aider ?",
    "Elle travaille ici depuis trois ans, et cela lui plaît toujours.",
    "Deux chiens jouent dans la neige.\nLeur maître boit un café.",
  ],
  de: [
    "Ein kleines Mädchen in einem roten Kleid füttert die Enten am See.",
    "Ich weiß nicht, wo der Bahnhof ist. Können Sie mir helfen?",
    "Sie arbeitet hier seit drei Jahren, und es gefällt ihr immer noch.",
    "Zwei Hunde spielen im Schnee.\nIhr Besitzer trinkt eine Tasse Kaffee.",
  ],
  ru: [
    "Маленькая девочка кормит уток у озера.",
    "Я не знаю, где вокзал. Вы можете мне помочь?",
    "Она работает здесь уже три года, и ей всё ещё нравится.",
    "Две собаки играют в снегу.\nИх хозяин пьёт кофе.",
  ],
  ja: [
    "小さな女の子が公園で鳥に餌をやっています。",
    "駅がどこにあるか分かりません。手伝ってくれませんか。",
    "彼女は三年前からここで働いています。",
    "犬が二匹、雪の中で遊んでいる。\n飼い主はコーヒーを飲んでいる。",
  ],
};

export const TO_CLASSIFY = [
  "A wonderful film, funny and moving from start to finish.",
  "Boring, badly acted and far too long. Avoid it.",
  "The story is weak, but the music is beautiful and I loved the ending.",
  "I could watch this film every week.",
];

/**
 * @param {HTMLElement} box
 * @param {string[]} texts
 * @param {string} language
 * @param {(text: string) => void} choose
 */
export function showExamples(box, texts, language, choose) {
  const buttons = texts.map((text) =>
    element("li", {}, element("button", { className: "example", lang: language, onclick: () => choose(text) }, text)),
  );
  const title = element("h3", {}, texts.length > 0 ? "Try one of these, and point at its words" : "");
  box.replaceChildren(title, element("ul", {}, ...buttons));
}
