// SPDX-License-Identifier: Apache-2.0
// The hands and eyes of test_classic.py in a page of the classic notebook: see driver.js.
"use strict";

const { drive } = require("./driver");

const cell = (page, index) => page.locator("#notebook-container > .cell").nth(index);
const prompt = (page, index) => cell(page, index).locator(".input_prompt");
const dialog = (page) => page.locator(".modal.in .modal-content");

// Jupyter loses the output of what is run before it listens to a new kernel, as every user of a
// slow machine knows. Until something is heard on the channel of outputs, asks again.
function waitUntilHeard() {
  const { kernel } = globalThis.Jupyter.notebook;
  return new Promise((resolve) => {
    const again = setInterval(() => kernel.kernel_info(), 500);
    kernel.events.one("kernel_idle.Kernel", () => {
      clearInterval(again);
      resolve();
    });
  });
}

async function startCell(page, index) {
  await cell(page, index).locator(".input_area").click();
  await page.keyboard.press("Control+Enter");
}

// The page has seen the reply, and the end of the output, of what the cell asked for last.
function isDone(index) {
  const { notebook } = globalThis.Jupyter;
  const request = notebook.kernel._msg_callbacks[notebook.get_cell(index).last_msg_id];
  return request?.shell_done && request?.iopub_done;
}

// One entry for each piece of output: what it looks like, the markup it is made of, and its kind.
async function outputs(page, index) {
  return cell(page, index).locator(".output_subarea").evaluateAll((areas) =>
    areas.map((area) => ({
      text: area.innerText,
      html: area.innerHTML,
      kind: area.className,
    })));
}

const commands = {
  async open(page, { url }) {
    await page.goto(url);
    await page.waitForSelector("#kernel_indicator_icon.kernel_idle_icon", { state: "attached" });
    await page.evaluate(waitUntilHeard);
  },

  // Runs a cell to its end.
  async run(page, { index }) {
    await startCell(page, index);
    await page.waitForFunction(isDone, index);
    return { prompt: await prompt(page, index).innerText(), outputs: await outputs(page, index) };
  },

  async start(page, { index }) {
    await startCell(page, index);
  },

  // The words of the box that the page puts before everything else.
  async dialog(page) {
    await dialog(page).waitFor();
    return dialog(page).innerText();
  },

  async dismiss(page) {
    await dialog(page).locator(".btn-primary").click();
    await dialog(page).waitFor({ state: "detached" });
    await page.evaluate(waitUntilHeard);
  },

  // Of the cells `first` to `last`, in whatever theme the page has.
  async screenshot(page, { path, first, last }) {
    const from = await cell(page, first).boundingBox();
    const to = await cell(page, last).boundingBox();
    const clip = { x: from.x, y: from.y, width: from.width, height: to.y + to.height - from.y };
    await page.screenshot({ path, clip, fullPage: true });
  },
};

drive(commands);
