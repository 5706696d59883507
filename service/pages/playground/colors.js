/**
 * Perceptually even colour scales: equal steps of a value are equal steps of lightness in Oklch
 * (Björn Ottosson, "A perceptual color space for image processing", 2020).
 */

/** @typedef {[number, number, number]} Color  sRGB, 0 to 255. */

const DARK = matchMedia("(prefers-color-scheme: dark)");

export function isDark() {
  return DARK.matches;
}

/** @param {() => void} listener  Called when the scheme changes. */
export function onScheme(listener) {
  DARK.addEventListener("change", listener);
}

/**
 * Returns 256 colours from the background to the ink, for values from 0 to 1.
 *
 * @param {boolean} dark
 * @returns {Color[]}
 */
export function sequential(dark) {
  return Array.from({ length: 256 }, (_, i) => {
    const t = i / 255;
    const chroma = 0.01 + 0.1 * Math.sin(2.5 * t);
    return dark ? oklch(0.255 + 0.68 * t, chroma, 215 - 75 * t) : oklch(0.975 - 0.66 * t, chroma, 165 + 85 * t);
  });
}

/**
 * Returns a colour between two, with the background in the middle. Text on it can be read, also at both ends.
 *
 * @param {number} value  -1 to 1.
 * @param {boolean} dark
 * @returns {Color}
 */
export function diverging(value, dark) {
  const strength = Math.min(1, Math.abs(value));
  const hue = value < 0 ? 55 : 190;
  return dark ? oklch(0.235 + 0.205 * strength, 0.085 * strength, hue) : oklch(0.995 - 0.185 * strength, 0.1 * strength, hue);
}

/** @param {Color} color */
export function css([red, green, blue]) {
  return `rgb(${red} ${green} ${blue})`;
}

/** @param {number} lightness 0 to 1 @param {number} chroma @param {number} hue degrees @returns {Color} */
export function oklch(lightness, chroma, hue) {
  const a = chroma * Math.cos((hue * Math.PI) / 180);
  const b = chroma * Math.sin((hue * Math.PI) / 180);
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    encoded(4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s),
    encoded(-1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s),
    encoded(-0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s),
  ];
}

/** Linear light as sRGB. */
function encoded(light) {
  const clipped = Math.max(0, Math.min(1, light));
  return Math.round(255 * (clipped <= 0.0031308 ? 12.92 * clipped : 1.055 * clipped ** (1 / 2.4) - 0.055));
}
