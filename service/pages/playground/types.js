/**
 * The types of answers over HTTP, for readers of this code and their editors; see /docs of a running service.
 *
 * @typedef {[number, number]} Range  Start and end in characters (Unicode code points).
 * @typedef {{token: string, span: Range}} Token
 * @typedef {{source: Token[], target: Token[], pairs: string}} Links
 * @typedef {Links & {words: Links}} Alignment
 *
 * @typedef {"cross" | "encoder" | "decoder"} Kind
 * @typedef {object} Matrix
 * @property {Kind} kind
 * @property {number} layer
 * @property {number} head
 * @property {"source" | "target"} rows     The list of tokens that the rows belong to.
 * @property {"source" | "prefix"} columns
 * @property {number} first_row             Place of the first row's token in that list.
 * @property {number} first_column
 * @property {[number, number]} shape
 * @property {string} weights               Base64 of little-endian float32, row after row.
 *
 * @typedef {{source: Token[], target?: Token[], prefix?: Token[], matrices: Matrix[]}} Attention
 *
 * @typedef {object} Evidence
 * @property {Record<string, number>} logits
 * @property {(Token & {contributions: Record<string, number>})[]} tokens
 *
 * @typedef {object} Model
 * @property {string} name
 * @property {"translation" | "classification" | "embedding"} task
 * @property {string[]} sources
 * @property {string[]} targets
 * @property {string[]} labels
 * @property {boolean} [pairs]
 * @property {string} precision
 * @property {string} provider
 * @property {{encoder: number, decoder: number}} layers
 * @property {Record<Kind, number>} attention  Number of layers that have matrices.
 * @property {number} heads
 * @property {{beam_size: number}} [decoding]
 * @property {number} [parameters]
 * @property {boolean} small
 * @property {{source: string, revision?: string}} [origin]
 * @property {string} [licence]
 * @property {Record<string, Record<string, number>>} evaluation  Scores by test set and metric.
 *
 * @typedef {{text: string, score: number}} Wording
 * @typedef {{text: string, span: Range, probability: number}} SureWord
 * @typedef {{language: string, models: string[]}} Pivot
 * @typedef {object} FromAnywhere
 * @property {{language: string, confidence: number}} [detected]
 * @property {string} [model]
 * @property {Pivot} [pivot]
 * @typedef {Wording & FromAnywhere & {alternatives?: Wording[], alignment?: Alignment, attention?: Attention, words?: SureWord[]}} Translation
 * @typedef {{model?: string, pivot?: Pivot, translations: Translation[]}} Answer
 * @typedef {object} Prediction
 * @property {string} label
 * @property {Record<string, number>} scores  By falling score.
 * @property {Evidence} [evidence]
 * @property {Attention} [attention]
 *
 * @typedef {object} DocumentCard
 * @property {string} id
 * @property {string} [key]
 * @property {"queued" | "translating" | "done" | "error"} status
 * @property {string} file_name
 * @property {number} progress  0 to 1.
 * @property {number} [seconds_remaining]
 * @property {string} [error]
 *
 * @typedef {{name: string, ms: number}} Part
 * @typedef {{roundTrip: number, parts: Part[]}} Timing  Milliseconds.
 */

export {};
