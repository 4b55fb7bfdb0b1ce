// What the page complained of while a variant ran: breaches of its policy and errors that nobody caught.

/** @type {string[]} */
let complaints = [];

/** Listen for what no caller sees. */
export function watchPage() {
  addEventListener("securitypolicyviolation", ({ effectiveDirective, blockedURI, sourceFile, lineNumber }) => {
    const where = `${sourceFile}:${lineNumber}`;
    complaints.push(`the content security policy (${effectiveDirective}) refused ${blockedURI} at ${where}`);
  });
  addEventListener("error", ({ message }) => complaints.push(`uncaught: ${message}`));
  addEventListener("unhandledrejection", ({ reason }) => {
    complaints.push(`uncaught in a promise: ${reason?.message ?? reason}`);
  });
}

/** @returns {string[]} what arrived since the last call */
export function takeComplaints() {
  const taken = complaints;
  complaints = [];
  return taken;
}
