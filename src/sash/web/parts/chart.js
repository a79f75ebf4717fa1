/** A plot with a value or several for each day, its legend with the numbers, and the same as a table. */

import uPlot from "../vendor/uplot.js";
import { html, nothing } from "../vendor/lit.js";
import { formatDay, getLanguage, t } from "../text.js";
import { SashElement } from "../element.js";

const HEIGHT = 190;
const FONT = "12px system-ui, sans-serif";
// The width of a character of an axis label, and the space around the label.
const CHAR_WIDTH = 7;
const LABEL_SPACE = 18;
const MIN_LABEL_DISTANCE = 62;
const DAY_AXIS_HEIGHT = 26;
const DAY_STEPS = [1, 2, 3, 5, 7, 10, 14, 21, 30];
const WHOLE_STEPS = [1, 2, 5].flatMap((step) => Array.from({ length: 9 }, (_, power) => step * 10 ** power)).sort((one, two) => one - two);

const sheet = new CSSStyleSheet();
sheet.replaceSync(await (await fetch(new URL("../vendor/uplot.css", import.meta.url))).text());

class Chart extends SashElement {
  static properties = {
    heading: {},
    hint: {},
    /** "bars" puts the series of a day on top of each other, "lines" draws each for itself. */
    kind: {},
    /** The days as "2026-11-18", oldest first. */
    days: { attribute: false },
    /** [{label, color, values, whole}]: the name of a colour property, a number or null for each day, and the text for all days. */
    series: { attribute: false },
    /** Returns a value as people read it. */
    format: { attribute: false },
    /** Returns a value for the table. Default: `format`. */
    formatExact: { attribute: false },
    /** The end of the axis of values. Default: the largest value. */
    top: { type: Number },
    /** The words of a chart without values. */
    emptyText: {},
    /** Whether the values are counts, so that the axis has no fractions. */
    isWhole: { type: Boolean },
    hovered: { state: true },
  };

  connectedCallback() {
    super.connectedCallback();
    const root = this.getRootNode();
    if (!root.adoptedStyleSheets.includes(sheet)) root.adoptedStyleSheets = [...root.adoptedStyleSheets, sheet];
    this._observer = new ResizeObserver(() => this._fit());
  }

  disconnectedCallback() {
    super.disconnectedCallback();
    this._observer.disconnect();
    this._plot?.destroy();
    this._plot = null;
  }

  updated(changed) {
    if (!["days", "series", "kind", "top"].some((name) => changed.has(name))) return;
    this._plot?.destroy();
    this._plot = null;
    const frame = this.querySelector(".plot");
    if (!frame) return;
    this._observer.disconnect();
    this._plot = new uPlot(this._describePlot(frame.clientWidth), this._stackValues(), frame);
    this._observer.observe(frame);
  }

  render() {
    // A line at zero tells something, bars of no height do not.
    const isEmpty = !this.series.some(({ values }) => values.some((value) => value || (value === 0 && this.kind === "lines")));
    return html`<section class="card chart">
      <h3>${this.heading}</h3>
      <p class="dim small">${this.hint}</p>
      ${isEmpty
        ? html`<p class="empty">${this.emptyText ?? t("costs.chart.empty")}</p>`
        : html`${this._renderLegend()}
            <div class="plot" role="img" aria-label=${this._describe()}></div>
            <i class="probe" @transitionend=${() => this._plot?.redraw(true, true)}></i>
            ${this._renderTable()}`}
    </section>`;
  }

  /** The legend shows the numbers of the day below the pointer, or of all days. */
  _renderLegend() {
    const index = this.hovered ?? null;
    const when = index === null ? t("costs.chart.all_days", { count: this.days.length }) : formatDay(this.days[index]);
    return html`<ul class="legend">
      <li class="when">${when}</li>
      ${this.series.map(
        ({ label, color, values, whole }) => html`<li>
          <i .style=${`background: var(${color})`}></i>${label}
          <b>${index === null ? whole : this.format(values[index])}</b>
        </li>`,
      )}
    </ul>`;
  }

  _renderTable() {
    // The newest day comes first. Days without anything are left out.
    const rows = this.days.map((day, index) => ({ day, values: this.series.map(({ values }) => values[index]) })).reverse();
    const formatValue = this.formatExact ?? this.format;
    // Without a value, a line has no point, and the height of a bar is unknown.
    const [nothingThere, missing] = this.kind === "lines" ? [null, "–"] : [0, t("unknown")];
    const shown = rows.filter(({ values }) => values.some((value) => value !== nothingThere));
    return html`<details>
      <summary class="small">${t("costs.chart.table")}</summary>
      <div class="scrolled">
        <table>
          <caption class="visually-hidden">${this.heading}</caption>
          <thead>
            <tr>
              <th scope="col">${t("costs.day")}</th>
              ${this.series.map(({ label }) => html`<th scope="col" class="number">${label}</th>`)}
            </tr>
          </thead>
          <tbody>
            ${shown.map(
              ({ day, values }) => html`<tr>
                <th scope="row">${formatDay(day)}</th>
                ${values.map((value) => html`<td class="number">${value === null ? missing : formatValue(value)}</td>`)}
              </tr>`,
            )}
          </tbody>
        </table>
      </div>
      ${shown.length < rows.length ? html`<p class="dim small">${t("costs.chart.other_days")}</p>` : nothing}
    </details>`;
  }

  _describe() {
    const sums = this.series.map(({ label, whole }) => `${label} ${whole}`);
    return `${this.heading}: ${t("costs.chart.all_days", { count: this.days.length })}: ${sums.join(", ")}. ${t("costs.chart.see_table")}`;
  }

  /** Return the columns for uPlot. Bars are drawn from the highest sum to the lowest, each over the one before. */
  _stackValues() {
    const columns = this.series.map(({ values }) => values);
    if (this.kind === "bars") {
      for (let n = 1; n < columns.length; n++) columns[n] = columns[n].map((value, day) => (value ?? 0) + columns[n - 1][day]);
      columns.reverse();
    }
    return [this.days.map((_, index) => index), ...columns];
  }

  _describePlot(width) {
    const count = this.days.length;
    const series = this.kind === "bars" ? [...this.series].reverse() : this.series;
    const shared = { font: FONT, stroke: () => this._readColor("--dim"), ticks: { show: false } };
    const grid = { stroke: () => this._readColor("--line"), width: 1 };
    return {
      width,
      height: HEIGHT,
      legend: { show: false },
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false, setScale: false } },
      hooks: { setCursor: [(plot) => (this.hovered = plot.cursor.idx ?? null)] },
      scales: { x: { time: false, range: () => [-0.5, count - 0.5] }, y: { range: (_, __, max) => [0, this.top ?? (max || 1) * 1.05] } },
      axes: [
        {
          ...shared,
          grid: { show: false },
          size: DAY_AXIS_HEIGHT,
          space: MIN_LABEL_DISTANCE,
          incrs: DAY_STEPS,
          // Today has a label, and then each `step` days before it.
          splits: (_, __, ___, ____, step) => this.days.map((_day, n) => n).filter((n) => (count - 1 - n) % step === 0),
          values: (_, splits) => splits.map((n) => formatAxisDay(this.days[n])),
        },
        { ...shared, grid, ...(this.isWhole ? { incrs: WHOLE_STEPS } : {}), values: (_, splits) => splits.map((value) => this.format(value)), size: (_, labels) => measureLabels(labels) },
      ],
      series: [{}, ...series.map(({ color }) => this._describeSeries(() => this._readColor(color)))],
    };
  }

  _describeSeries(color) {
    if (this.kind === "bars") return { fill: color, width: 0, paths: uPlot.paths.bars({ size: [0.7, 40] }), points: { show: false } };
    return { stroke: color, width: 2, points: { show: true, size: 6, fill: color, stroke: color } };
  }

  /** Return a colour property as a canvas needs it: with the light or the dark value. */
  _readColor(name) {
    const probe = this.querySelector(".probe");
    probe.style.setProperty("background-color", `var(${name})`);
    return getComputedStyle(probe).backgroundColor;
  }

  _fit() {
    const width = this.querySelector(".plot")?.clientWidth;
    if (this._plot && width && width !== this._plot.width) this._plot.setSize({ width, height: HEIGHT });
  }
}

function formatAxisDay(day) {
  if (day === undefined) return "";
  return new Intl.DateTimeFormat(getLanguage(), { day: "numeric", month: "short" }).format(new Date(`${day}T12:00`));
}

function measureLabels(labels) {
  return Math.max(0, ...(labels ?? []).map((label) => label.length)) * CHAR_WIDTH + LABEL_SPACE;
}

customElements.define("sash-chart", Chart);
