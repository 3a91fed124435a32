// SPDX-License-Identifier: Apache-2.0
// What moves a page of Chromium. Reads one command per line from stdin, as JSON, and answers each
// with one line: {"value": ...} or {"error": "..."}. Commands do what a user does (clicks,
// Ctrl+Enter) and tell what a user sees; what that must be is the test's business. Ends with its
// stdin.
//
//   node classic.js CHROMIUM, or another script with a table of commands
"use strict";

const readline = require("node:readline");
const { chromium } = require("playwright-core");

const HANG_MS = 120_000; // protects from hangs only

function hung() {
  return new Promise((_, reject) => {
    setTimeout(() => reject(new Error(`not done after ${HANG_MS} ms`)), HANG_MS).unref();
  });
}

async function answer(commands, page, line) {
  try {
    const { name, ...rest } = JSON.parse(line);
    return { value: (await Promise.race([commands[name](page, rest), hung()])) ?? null };
  } catch (error) {
    return { error: String(error) };
  }
}

// `commands`: by name, an asynchronous function of the page and the command's other fields.
async function drive(commands) {
  const browser = await chromium.launch({
    executablePath: process.argv[2],
    args: [
      "--no-sandbox", // the pages are the test's own, and root has no sandbox
      "--disable-gpu",
      "--disable-background-networking", // nothing is asked for but the pages
      "--disable-component-update",
      "--disable-sync",
    ],
  });
  const page = await browser.newPage({ viewport: { width: 1000, height: 900 } });
  page.setDefaultTimeout(HANG_MS);
  for await (const line of readline.createInterface({ input: process.stdin }))
    process.stdout.write(JSON.stringify(await answer(commands, page, line)) + "\n");
  await browser.close();
}

module.exports = { drive };
