// SPDX-License-Identifier: Apache-2.0
// The hands and eyes of test_jupyterlab.py in a page of JupyterLab 4 or of Notebook 7, which is made
// of the same parts: see driver.js. The server must expose the application to the page
// (expose_app_in_browser): only through it can be known that the kernel is heard.
"use strict";

const { drive, within, HANG_MS } = require("./driver");

const panel = (page) => page.locator(".jp-NotebookPanel:not(.lm-mod-hidden)");
const cell = (page, index) => panel(page).locator(".jp-CodeCell").nth(index);
const prompt = (page, index) => cell(page, index).locator(".jp-InputPrompt");
const dialog = (page) => page.locator(".jp-Dialog-content");

// Outputs of what is run before the page listens to a new kernel are lost. Until something is heard
// on the channel of outputs, asks again.
function waitUntilHeard() {
  const kernel = () => globalThis.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel;
  return new Promise((resolve) => {
    let heard = false;
    const again = setInterval(() => {
      const found = kernel();
      if (heard) {
        clearInterval(again);
        resolve();
      } else if (found?.connectionStatus === "connected") {
        found.iopubMessage.connect((_, message) => {
          heard ||= message.header.msg_type === "status";
        });
        found.requestKernelInfo().catch(() => {});
      }
    }, 500);
  });
}

async function startCell(page, index) {
  await within(`a click in cell ${index}`, cell(page, index).locator(".cm-content").click());
  await within("Ctrl+Enter", page.keyboard.press("Control+Enter"));
}

// One entry for each piece of output: what it looks like, the markup it is made of, and its kind.
async function outputs(page, index) {
  const areas = cell(page, index).locator(".jp-OutputArea-output");
  return within(`the output of cell ${index}`, areas.evaluateAll((shown) =>
    shown.map((area) => ({
      text: area.innerText,
      html: area.innerHTML,
      kind: area.dataset.mimeType,
    }))));
}

// The kernel has answered the last request of the page and has nothing more to do.
function isIdle() {
  const { kernel } = globalThis.jupyterapp.shell.currentWidget.sessionContext.session;
  return kernel.status === "idle" && kernel.connectionStatus === "connected";
}

async function untilReady(page) {
  await within("the kernel to be heard", page.evaluate(waitUntilHeard));
  await within("the kernel to be idle", page.waitForFunction(isIdle));
}

// Another number than before; while the cell runs, it is an asterisk.
async function untilNumbered(page, index, before) {
  const isNew = (now) => now !== before && /\d/.test(now);
  const deadline = Date.now() + HANG_MS;
  while (!isNew(await within("a prompt", prompt(page, index).innerText()))) {
    if (Date.now() > deadline)
      throw new Error(`waited for cell ${index} to end: its prompt is still '${before}'`);
    await page.waitForTimeout(50);
  }
}

async function untilClosed(page) {
  await within("the button of the box", dialog(page).locator(".jp-mod-accept").click());
  await within("the box to close", dialog(page).waitFor({ state: "detached" }));
}

const commands = {
  // Opens a notebook that names no kernel, and chooses the one with this name when asked.
  async open(page, { url, kernel }) {
    await within("the page", page.goto(url));
    await within(`the kernel '${kernel}' to choose`,
                 dialog(page).locator("select").selectOption({ label: kernel }));
    await untilClosed(page);
    await untilReady(page);
    return within("the kernel's name", page.locator(".jp-KernelName").first().innerText());
  },

  // Runs a cell to its end: its number is another one then, and the kernel is idle.
  async run(page, { index }) {
    const before = await within(`cell ${index}`, prompt(page, index).innerText());
    await startCell(page, index);
    await untilNumbered(page, index, before);
    await within("the kernel to be idle", page.waitForFunction(isIdle));
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
    await untilClosed(page);
    await untilReady(page);
  },

  // Of the notebook as far as the cell `last`, with its own toolbar.
  async screenshot(page, { path, last }) {
    const from = await within("the notebook's place", panel(page).boundingBox());
    const to = await within(`the place of cell ${last}`, cell(page, last).boundingBox());
    const clip = { x: from.x, y: from.y, width: from.width, height: to.y + to.height - from.y };
    await within("a picture", page.screenshot({ path, clip }));
  },
};

drive(commands);
