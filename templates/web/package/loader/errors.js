/** @file All errors: each says what happened (`message`), why, and what to do next (`hint`). */

/** Base of all errors of this package. */
export class BundleError extends Error {
  /**
   * @param {string} message what happened, one sentence
   * @param {{ why?: string, hint?: string, cause?: unknown }} [details]
   */
  constructor(message, { why = "", hint = "", cause } = {}) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = "BundleError";
    this.why = why;
    this.hint = hint;
  }

  /** The whole of it, for a person. */
  toString() {
    return [`${this.name}: ${this.message}`, this.why && `  why:  ${this.why}`, this.hint && `  next: ${this.hint}`]
      .filter(Boolean)
      .join("\n");
  }
}

/**
 * A minifier may rename classes, so each sets its name itself.
 *
 * @param {string} name
 * @returns {typeof BundleError}
 */
function define(name) {
  return class extends BundleError {
    /** @param {ConstructorParameters<typeof BundleError>} given */
    constructor(...given) {
      super(...given);
      this.name = name;
    }
  };
}

/** A file of the bundle does not match its checksum. */
export class IntegrityError extends define("IntegrityError") {}

/** A file of the bundle could not be fetched: missing, refused, cut off or offline. */
export class DownloadError extends define("DownloadError") {}

/** No variant of the bundle can run here. */
export class IncompatibleError extends define("IncompatibleError") {}

/** Strict mode: the preferred variant cannot run here, and no other is allowed. */
export class FallbackError extends define("FallbackError") {}

/** An input or an option has the wrong name, type or shape. */
export class InputError extends define("InputError") {}

/** The browser has not enough memory left for this model. */
export class OutOfMemoryError extends define("OutOfMemoryError") {}

/** The browser closed the GPU device; all data in its memory is lost. */
export class DeviceLostError extends define("DeviceLostError") {}

/** The model was disposed of and cannot run. */
export class DisposedError extends define("DisposedError") {}

/** The runtime failed in another way. */
export class InferenceError extends define("InferenceError") {}
