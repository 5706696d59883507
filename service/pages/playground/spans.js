/** Cuts texts by spans. The service counts characters as Unicode code points, JavaScript strings as UTF-16 units. */

/**
 * @typedef {import("./types.js").Token} Token
 * @typedef {{start: number, end: number, tokens: number[]}} Piece
 *   A part of a text in UTF-16 units, and its tokens: none for the text between tokens, several if a character is
 *   made of several tokens.
 */

/**
 * Returns a function from positions in code points to positions in UTF-16 units.
 *
 * @param {string} text
 * @returns {(position: number) => number}
 */
export function unitsOf(text) {
  if (!/[\ud800-\udfff]/.test(text)) return (position) => position;
  const units = [0];
  for (const character of text) units.push(units.at(-1) + character.length);
  return (position) => units[Math.min(position, units.length - 1)];
}

/**
 * Cuts a whole text into pieces, in order; tokens that cover nothing are left out.
 *
 * @param {string} text
 * @param {Token[]} tokens
 * @returns {Piece[]}
 */
export function cut(text, tokens) {
  const units = unitsOf(text);
  /** @type {Piece[]} */
  const pieces = [];
  let position = 0;
  tokens.forEach(({ span }, i) => {
    const [start, end] = span.map(units);
    if (start >= end) return;
    if (start < position) {
      const last = pieces.at(-1);
      last.tokens.push(i);
      position = last.end = Math.max(last.end, end);
      return;
    }
    if (start > position) pieces.push({ start: position, end: start, tokens: [] });
    pieces.push({ start, end, tokens: [i] });
    position = end;
  });
  if (position < text.length) pieces.push({ start: position, end: text.length, tokens: [] });
  return pieces;
}

/**
 * Returns the pieces of a changed text: those before and after the change stay, with their tokens.
 *
 * @param {string} before
 * @param {string} after
 * @param {Piece[]} pieces
 * @returns {{pieces: Piece[], ahead: number, behind: number}}  The pieces, and how many stayed at each end.
 */
export function carried(before, after, pieces) {
  const shorter = Math.min(before.length, after.length);
  let head = 0;
  while (head < shorter && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < shorter - head && before[before.length - 1 - tail] === after[after.length - 1 - tail]) tail += 1;
  const shift = after.length - before.length;
  const ahead = pieces.filter((piece) => piece.end <= head);
  const behind = pieces
    .filter((piece) => piece.end > head && piece.start >= before.length - tail)
    .map(({ start, end, tokens }) => ({ start: start + shift, end: end + shift, tokens }));
  const [start, end] = [ahead.at(-1)?.end ?? 0, behind[0]?.start ?? after.length];
  const between = start < end ? [{ start, end, tokens: [] }] : [];
  return { pieces: [...ahead, ...between, ...behind], ahead: ahead.length, behind: behind.length };
}

/**
 * Returns a token as it is shown alone: a part of a word has a dot before it.
 *
 * @param {Token} token
 */
export function label({ token }) {
  if (token.startsWith("▁")) return token.slice(1) || "␣";
  return /^[\p{L}\p{N}]/u.test(token) ? `·${token}` : token;
}
