// SPDX-License-Identifier: Apache-2.0
// What moves a page of Chromium. Reads one command per line from stdin, as JSON, and answers each
// with one line: {"value": ...} or {"error": "..."}. Commands do what a user does (clicks,
// Ctrl+Enter) and tell what a user sees; what that must be is the test's business. Ends with its
// stdin.
//
//   node classic.js CHROMIUM PICTURE, or another script with a table of commands
//
// A command that fails leaves a PICTURE of the page, and its answer says what it waited for and which
// errors the page had.
"use strict";

const readline = require("node:readline");
const { chromium } = require("playwright-core");

const HANG_MS = 120_000; // protects from hangs only
// A page that has run wild answers nothing: what is then asked of it is given up soon.
const LAST_LOOK_MS = 10_000;
const MAX_ERRORS = 5;

function limited(promise, limitMs) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`not done after ${limitMs} ms`)), limitMs);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// Every wait of a command goes through here. Playwright's own limit is the shorter one, because it
// knows more to say.
async function within(what, promise) {
  try {
    return await limited(promise, HANG_MS + LAST_LOOK_MS);
  } catch (error) {
    throw new Error(`waited for ${what}: ${error.message}`);
  }
}

// Counts the errors that a page reports, by their first line.
function watchErrors(page) {
  const errors = new Map();
  const count = (text) => {
    const [line] = text.split("\n");
    errors.set(line, (errors.get(line) ?? 0) + 1);
  };
  page.on("pageerror", (error) => count(String(error)));
  page.on("crash", () => count("the page crashed"));
  page.on("console", (message) => {
    if (message.type() === "error") count(message.text());
  });
  return () => {
    const most = [...errors].sort((one, other) => other[1] - one[1]).slice(0, MAX_ERRORS);
    return most.map(([line, times]) => `\n  ${times} times in the page: ${line}`).join("");
  };
}

async function answer(commands, page, line, errors, picture) {
  try {
    const { name, ...rest } = JSON.parse(line);
    return { value: (await commands[name](page, rest)) ?? null };
  } catch (error) {
    const taken = await limited(page.screenshot({ path: picture }), LAST_LOOK_MS)
      .then(() => `a picture of it: ${picture}`, () => "it cannot be pictured");
    return { error: `${error.message}${errors()}\n  ${taken}` };
  }
}

// `commands`: by name, an asynchronous function of the page and the command's other fields.
async function drive(commands) {
  const [executablePath, picture] = process.argv.slice(2);
  const browser = await chromium.launch({
    executablePath,
    args: [
      "--no-sandbox", // the pages are the test's own, and root has no sandbox
      "--disable-gpu",
      "--disable-background-networking", // nothing is asked for but the pages
      "--disable-component-update",
      "--disable-sync",
      "--js-flags=--max-old-space-size=1024", // a page that runs wild ends before the machine does
    ],
  });
  const page = await browser.newPage({ viewport: { width: 1000, height: 900 } });
  page.setDefaultTimeout(HANG_MS);
  const errors = watchErrors(page);
  for await (const line of readline.createInterface({ input: process.stdin }))
    process.stdout.write(
      JSON.stringify(await answer(commands, page, line, errors, picture)) + "\n");
  await limited(browser.close(), LAST_LOOK_MS).catch(() => {});
  process.exit(); // whatever an abandoned command still waits for
}

module.exports = { drive, within, HANG_MS };
