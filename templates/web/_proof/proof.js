// Runs the golden set of every variant in this browser, calls it as an application does, and tells the server of each.
import { browserName, lacksAdapter, pickOnAdapter } from "./browser.js";
import { explain, holdOn, readTask, tell } from "./channel.js";
import { encodeOutputs, findFaultyCalls, recordCalls } from "./calls.js";
import { takeComplaints, watchPage } from "./complaints.js";
import { findFaultyEntries } from "./entries.js";
import { nameMember, openMember, probeMember } from "./members.js";
import { countNodes, watchSessions } from "./nodes.js";

/** The bundle's own entry point, which stands at the root. */
const PACKAGE = "/index.js";

/** It compiles shaders for a CPU: a person who waits should know. */
const SLOW = "the browser's software adapter runs it here, which can take minutes";

/** @typedef {import("./channel.js").Pair} Pair */

/**
 * @param {any} bundle
 * @param {Pair} pair
 * @returns {Promise<object>} the outcome, in the words of the server
 */
async function prove(bundle, pair) {
  const offer = await probeMember(bundle, pair);
  if (!offer) return { status: "failed", reason: `the package knows no variant ${await nameMember(pair)}` };
  if (!offer.available) return { status: "unavailable", reason: offer.reason };
  const began = performance.now();
  const member = await openMember(bundle, pair, { cache: false });
  const opened = performance.now();
  try {
    const test = await member.model.selfTest();
    const figures = {
      opening_seconds: (opened - began) / 1000,
      golden_seconds: (performance.now() - opened) / 1000,
    };
    const calls = await recordCalls(member, pair.component);
    const outputs = encodeOutputs(calls);
    if (outputs) await tell("outputs", { ...pair, outputs });
    const faults = [...(await findFaultyCalls(member.model, calls)), ...(await findFaultyEntries(bundle, pair, member, calls))];
    return describe(member.report, { ...test, passed: test.passed && !faults.length, faults: [...test.faults, ...faults] }, figures, pair.variant);
  } finally {
    await member.close();
  }
}

/**
 * @param {any} report
 * @param {any} test
 * @param {Record<string, number>} figures
 * @param {string} variant
 */
function describe(report, test, figures, variant) {
  const other = report.variant === variant ? [] : [`variant ${report.variant} was opened in its place`];
  const reasons = [...other, ...test.faults];
  const passed = test.passed && test.samples > 0 && other.length === 0;
  return {
    status: passed ? "passed" : "failed",
    reason: passed ? "" : reasons.join("; ") || "no sample was compared",
    samples: test.samples,
    synthetic: test.synthetic,
    outputs: test.outputs,
    unjudged: test.unjudged,
    build: report.build,
    providers: report.providers,
    rejected: report.rejected,
    threads: report.threads,
    software: report.softwareAdapter === true,
    notes: report.notes,
    figures,
  };
}

/**
 * @param {any} bundle
 * @param {Pair} pair
 */
async function proveAndTell(bundle, pair) {
  await tell("began", pair);
  let outcome;
  try {
    outcome = await prove(bundle, pair);
  } catch (error) {
    outcome = { status: "failed", reason: explain(error) };
  }
  await tell("outcome", { ...outcome, ...pair, nodes: countNodes(), faults: takeComplaints() });
}

/** @param {import("./channel.js").Task} task */
async function proveAll({ variants, adapter }) {
  /** @type {any} */
  let bundle;
  try {
    watchSessions();
    bundle = await import(PACKAGE);
  } catch (error) {
    const reason = [`the package cannot be imported: ${explain(error)}`, ...takeComplaints()].join("; ");
    for (const pair of variants) await tell("outcome", { ...pair, status: "failed", reason });
    return;
  }
  const slow = adapter === "software" ? await pickOnAdapter(variants) : [];
  for (const pair of variants) {
    if (slow.includes(pair)) await tell("remark", { text: `variant ${await nameMember(pair)}: ${SLOW}` });
    await proveAndTell(bundle, pair);
  }
}

watchPage();
void holdOn();
const task = await readTask();
await tell("browser", { name: await browserName() });
if (await lacksAdapter(task)) {
  await tell("no-adapter");
} else {
  await proveAll(task);
}
await tell("done");
