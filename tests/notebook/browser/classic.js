// SPDX-License-Identifier: Apache-2.0
// The hands and eyes of test_classic.py in a page of the classic notebook: see driver.js.
"use strict";

const { drive, within } = require("./driver");

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
  await within(`a click in cell ${index}`, cell(page, index).locator(".input_area").click());
  await within("Ctrl+Enter", page.keyboard.press("Control+Enter"));
}

// The page has seen the reply, and the end of the output, of what the cell asked for last.
function isDone(index) {
  const { notebook } = globalThis.Jupyter;
  const request = notebook.kernel._msg_callbacks[notebook.get_cell(index).last_msg_id];
  return request?.shell_done && request?.iopub_done;
}

// One entry for each piece of output: what it looks like, the markup it is made of, and its kind.
async function outputs(page, index) {
  const areas = cell(page, index).locator(".output_subarea");
  return within(`the output of cell ${index}`, areas.evaluateAll((shown) =>
    shown.map((area) => ({
      text: area.innerText,
      html: area.innerHTML,
      kind: area.className,
    }))));
}

async function untilHeard(page) {
  await within("the kernel to be heard", page.evaluate(waitUntilHeard));
}

const commands = {
  async open(page, { url }) {
    await within("the page", page.goto(url));
    const idle = page.locator("#kernel_indicator_icon.kernel_idle_icon");
    await within("the kernel to be idle", idle.waitFor({ state: "attached" }));
    await untilHeard(page);
  },

  // Runs a cell to its end.
  async run(page, { index }) {
    await startCell(page, index);
    await within(`cell ${index} to end`, page.waitForFunction(isDone, index));
    const now = await within("a prompt", prompt(page, index).innerText());
    return { prompt: now, outputs: await outputs(page, index) };
  },

  async start(page, { index }) {
    await startCell(page, index);
  },

  // The words of the box that the page puts before everything else.
  async dialog(page) {
    await within("a box", dialog(page).waitFor());
    return within("the words of the box", dialog(page).innerText());
  },

  async dismiss(page) {
    await within("the button of the box", dialog(page).locator(".btn-primary").click());
    await within("the box to close", dialog(page).waitFor({ state: "detached" }));
    await untilHeard(page);
  },

  // Of the cells `first` to `last`, in whatever theme the page has.
  async screenshot(page, { path, first, last }) {
    const from = await within(`the place of cell ${first}`, cell(page, first).boundingBox());
    const to = await within(`the place of cell ${last}`, cell(page, last).boundingBox());
    const clip = { x: from.x, y: from.y, width: from.width, height: to.y + to.height - from.y };
    await within("a picture", page.screenshot({ path, clip, fullPage: true }));
  },
};

drive(commands);
