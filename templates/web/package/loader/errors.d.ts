/** Base of all errors of this package: what happened (`message`), `why`, and what to do next (`hint`). */
export class BundleError extends Error {
  constructor(message: string, details?: { why?: string; hint?: string; cause?: unknown });
  readonly why: string;
  readonly hint: string;
}
/** A file of the bundle does not match its checksum. */
export class IntegrityError extends BundleError {}
/** A file of the bundle could not be fetched: missing, refused, cut off or offline. */
export class DownloadError extends BundleError {}
/** No variant of the bundle can run here. */
export class IncompatibleError extends BundleError {}
/** Strict mode: the preferred variant cannot run here, and no other is allowed. */
export class FallbackError extends BundleError {}
/** An input or an option has the wrong name, type or shape. */
export class InputError extends BundleError {}
/** The browser has not enough memory left for this model. */
export class OutOfMemoryError extends BundleError {}
/** The browser lost the GPU and everything in its memory. */
export class DeviceLostError extends BundleError {}
/** The model was disposed and can no longer run. */
export class DisposedError extends BundleError {}
/** The runtime failed in another way. */
export class InferenceError extends BundleError {}
