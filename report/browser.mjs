// A real browser for tests and screenshots: Debian's chromium, or what CHROMIUM names.
import { existsSync } from "node:fs";
import { chromium } from "playwright-core";

const places = [process.env.CHROMIUM, "/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

export function browserPath() {
  return places.find((path) => path && existsSync(path));
}

export function launch() {
  return chromium.launch({ executablePath: browserPath(), args: ["--no-sandbox", "--disable-dev-shm-usage"] });
}
