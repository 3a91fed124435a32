// SPDX-License-Identifier: Apache-2.0
// The hands and eyes of test_jupyterlab.py in a page of JupyterLab 4 or of Notebook 7, which is made
// of the same parts: see driver.js. The server must expose the application to the page
// (expose_app_in_browser): only through it can be known that the kernel is heard.
"use strict";

const { drive } = require("./driver");

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
  await cell(page, index).locator(".cm-content").click();
  await page.keyboard.press("Control+Enter");
}

// One entry for each piece of output: what it looks like, the markup it is made of, and its kind.
async function outputs(page, index) {
  return cell(page, index).locator(".jp-OutputArea-output").evaluateAll((areas) =>
    areas.map((area) => ({
      text: area.innerText,
      html: area.innerHTML,
      kind: area.dataset.mimeType,
    })));
}

// The kernel has answered the last request of the page and has nothing more to do.
function isIdle() {
  const { kernel } = globalThis.jupyterapp.shell.currentWidget.sessionContext.session;
  return kernel.status === "idle" && kernel.connectionStatus === "connected";
}

const commands = {
  // Opens a notebook that names no kernel, and chooses the one with this name when asked.
  async open(page, { url, kernel }) {
    await page.goto(url);
    await dialog(page).locator("select").selectOption({ label: kernel });
    await dialog(page).locator(".jp-mod-accept").click();
    await dialog(page).waitFor({ state: "detached" });
    await page.evaluate(waitUntilHeard);
    await page.waitForFunction(isIdle);
    return page.locator(".jp-KernelName").first().innerText();
  },

  // Runs a cell to its end: its number is another one then, and the kernel is idle.
  async run(page, { index }) {
    const before = await prompt(page, index).innerText();
    await startCell(page, index);
    for (;;) {
      const now = await prompt(page, index).innerText();
      if (now !== before && /\d/.test(now)) break;
      await page.waitForTimeout(50);
    }
    await page.waitForFunction(isIdle);
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
    await dialog(page).locator(".jp-mod-accept").click();
    await dialog(page).waitFor({ state: "detached" });
    await page.evaluate(waitUntilHeard);
    await page.waitForFunction(isIdle);
  },

  // Of the notebook as far as the cell `last`, with its own toolbar.
  async screenshot(page, { path, last }) {
    const from = await panel(page).boundingBox();
    const to = await cell(page, last).boundingBox();
    const clip = { x: from.x, y: from.y, width: from.width, height: to.y + to.height - from.y };
    await page.screenshot({ path, clip });
  },
};

drive(commands);
