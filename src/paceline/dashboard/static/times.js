// Moments in the viewer's own words and timezone. Shared by the components that show times.
const UNITS = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [Infinity, 86400, "d"]];

export function span(ms) {
  const seconds = Math.round(Math.abs(ms) / 1000);
  const [, divisor, unit] = UNITS.find(([limit]) => seconds < limit);
  return `${Math.floor(seconds / divisor)} ${unit}`;
}

export function relative(ms, now) {
  if (Math.abs(ms - now) < 1500) return "now";
  return ms < now ? `${span(ms - now)} ago` : `in ${span(ms - now)}`;
}

export function exact(ms) {
  return new Date(ms).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" });
}

// The time of day; with its date if that is not today.
export function clock(ms, now = Date.now()) {
  const date = new Date(ms);
  const time = date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  if (date.toDateString() === new Date(now).toDateString()) return time;
  return `${date.toLocaleDateString([], { weekday: "short", day: "numeric", month: "short" })}, ${time}`;
}

// One timer for all: each listener is called once a second while the tab is in view.
const listeners = new Set();
setInterval(() => document.hidden || listeners.forEach((tick) => tick(Date.now())), 1000);

export function everySecond(tick) {
  listeners.add(tick);
  return () => listeners.delete(tick);
}
