// Makes the still page live: charts that answer the mouse, tables that sort, names to choose from.
// Everything is there without it. Names reach the page as text nodes only.
"use strict";
(() => {
  const MOST_ROWS = 40;
  const data = JSON.parse(document.getElementById("data").textContent);
  const root = document.documentElement;
  const css = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const looks = data.markers.length;
  const dashes = data.dashes.map((dash) => (dash.length ? dash : "solid"));
  const symbols = { circle: "circle", ring: "circle", cross: "path://M0 0L10 10M0 10L10 0" };
  for (const [name, corners] of Object.entries(data.shapes)) symbols[name] = `path://M${corners.map((at) => at.join(" ")).join("L")}z`;
  const hollow = (marker) => marker === "ring" || marker === "cross";
  const figure = (v) =>
    v === null || v === undefined ? "—"
      : Math.abs(v) >= 1000 ? Math.round(v).toLocaleString("en-US")
      : Math.abs(v) >= 10 ? v.toFixed(1) : v.toFixed(3);
  const tick = (v) =>
    Math.abs(v) >= 1000 ? v.toLocaleString("en-US") : String(Number(v.toPrecision(6)));

  function element(name, text, kind) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  }

  // ---- tables -------------------------------------------------------------------------------
  function value(row, column) {
    const cell = row.cells[column];
    const number = cell.dataset.v ?? (cell.tagName === "TD" ? cell.textContent : "");
    return number === "" || isNaN(number) ? cell.textContent : Number(number);
  }

  function sort(table, column) {
    const head = table.tHead.rows[0].cells[column];
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...table.tBodies[0].rows];
    rows.sort((first, second) => {
      const a = value(first, column), b = value(second, column);
      const known = (v) => (v === "—" ? 1 : 0);
      if (known(a) || known(b)) return known(a) - known(b); // what is no figure comes last
      const order = typeof a === "number" && typeof b === "number"
        ? a - b : String(a).localeCompare(String(b), "en", { numeric: true });
      return down ? -order : order;
    });
    table.tBodies[0].append(...rows);
  }

  for (const table of document.querySelectorAll("table")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = element("button", head.textContent.trim() || "name");
      button.type = "button";
      button.addEventListener("click", () => sort(table, column));
      head.replaceChildren(button);
    });
  }

  // ---- what a chart says when it is pointed at ------------------------------------------------
  function tip(title, lines) {
    const box = element("div", undefined, "tip");
    box.append(element("b", title));
    for (const [name, words, swatch] of lines) {
      const line = element("div"), left = element("span");
      if (swatch) left.append(swatch.cloneNode(true));
      left.append(name);
      line.append(left, element("span", words));
      box.append(line);
    }
    return box;
  }
  const ranged = (v, low, high) =>
    low === null || low === undefined || high === null || high === undefined
      ? figure(v) : `${figure(v)} (${figure(low)} to ${figure(high)})`;

  // ---- parts of charts ------------------------------------------------------------------------
  function axis(type, name, ends, extra) {
    return Object.assign({
      type, min: ends && ends[0], max: ends && ends[1],
      axisLine: { show: false }, axisTick: { show: false },
      axisLabel: { color: css("--soft"), fontSize: 12, hideOverlap: true, formatter: type === "value" ? tick : undefined },
      splitLine: { show: type === "value", lineStyle: { color: css("--line") } },
      name, nameTextStyle: { color: css("--ink"), fontSize: 12 },
    }, extra);
  }

  // A straight line, or a stretch, to compare with; it takes no part in the scale.
  function drawn(render, clip = true) {
    return { type: "custom", silent: true, data: [0], z: 5, clip, tooltip: { show: false }, renderItem: render };
  }
  function reference(line, upright) {
    return drawn((params, api) => {
      const box = params.coordSys;
      const at = upright ? api.coord([line.value, 0])[0] : api.coord([0, line.value])[1];
      if (upright ? at < box.x - 1 || at > box.x + box.width + 1 : at < box.y - 1 || at > box.y + box.height + 1) return null;
      const late = upright && at > box.x + box.width - 110;
      const shape = upright
        ? { x1: at, x2: at, y1: box.y - 4, y2: box.y + box.height }
        : { x1: box.x, x2: box.x + box.width, y1: at, y2: at };
      return { type: "group", children: [
        { type: "line", shape, style: { stroke: css("--ink"), lineDash: [5, 4], lineWidth: 1.5 } },
        { type: "text", x: upright ? at + (late ? -5 : 5) : box.x + box.width - 4, y: upright ? box.y - 18 : at - 17, style: {
          text: line.label, fill: css("--ink"), stroke: css("--paper"), lineWidth: 3, font: `12px ${getComputedStyle(document.body).fontFamily}`, align: late || !upright ? "right" : "left", verticalAlign: "top",
        } },
      ] };
    }, false);
  }

  function plot(chart, box) {
    const lines = chart.series.every((s) => !s.points);
    const colour = (s) => css(`--c${s.colour % looks}`);
    const series = [];
    chart.series.forEach((s, i) => {
      const name = String(i);
      const points = s.x.map((x, k) => [x, s.y[k], k]).filter((p) => p[0] !== null && p[1] !== null);
      if (!s.points && s.low) {
        const inside = s.x.map((_, k) => k).filter((k) => s.low[k] !== null && s.high[k] !== null);
        series.push(Object.assign(drawn((params, api) => ({
          type: "polygon",
          shape: { points: [
            ...inside.map((k) => api.coord([s.x[k], s.high[k]])),
            ...inside.slice().reverse().map((k) => api.coord([s.x[k], s.low[k]])),
          ] },
          style: { fill: colour(s), opacity: 0.17 },
        })), { name, z: 1 }));
      }
      if (s.points) {
        const whiskers = points.filter((p) => (s.low && s.low[p[2]] !== null) || (s.x_low && s.x_low[p[2]] !== null));
        if (whiskers.length) {
          series.push({ type: "custom", name, silent: true, data: whiskers, z: 2, clip: true, tooltip: { show: false },
            renderItem: (params, api) => {
              const [x, y, k] = [api.value(0), api.value(1), api.value(2)], parts = [];
              const bar = (a, b) => parts.push({ type: "line", shape: { x1: a[0], y1: a[1], x2: b[0], y2: b[1] },
                style: { stroke: colour(s), lineWidth: 1.4, opacity: 0.75 } });
              if (s.low) bar(api.coord([x, s.low[k]]), api.coord([x, s.high[k]]));
              if (s.x_low) bar(api.coord([s.x_low[k], y]), api.coord([s.x_high[k], y]));
              return { type: "group", children: parts };
            } });
        }
        const marker = data.markers[s.style % looks];
        series.push({ type: "scatter", name, data: points, z: 3, symbol: symbols[marker], symbolSize: s.small ? 6 : 13,
          itemStyle: hollow(marker) ? { color: "transparent", borderColor: colour(s), borderWidth: 2.2 } : { color: colour(s) } });
      } else {
        series.push({ type: "line", name, data: points, z: 3, symbol: symbols[data.markers[s.style % looks]],
          showSymbol: points.length <= 15, symbolSize: 7, step: s.step ? "end" : false, lineStyle: { color: colour(s), width: 2.2, type: dashes[s.style % looks] },
          itemStyle: { color: colour(s) }, emphasis: { disabled: true }, silent: !lines });
      }
    });
    for (const line of chart.references) series.push(reference(line, line.axis === "x"));
    const names = chart.x_names;
    const x = axis("value", chart.x_label, chart.axes.x, { nameLocation: "middle", nameGap: 28, splitLine: { show: false } });
    if (names) {
      x.type = "category"; x.data = names; x.boundaryGap = true; delete x.min; delete x.max;
      x.axisLabel.formatter = undefined; x.axisLabel.width = 90; x.axisLabel.overflow = "truncate";
    }
    return {
      grid: { left: 62, right: 26, top: 32, bottom: 46, outerBoundsMode: "none" },
      xAxis: x,
      yAxis: axis("value", chart.y_label, chart.axes.y, { nameGap: 12, nameTextStyle: { color: css("--ink"), fontSize: 12, align: "left", padding: [0, 0, 0, -54] } }),
      legend: { show: false, data: chart.series.map((_, i) => String(i)) },
      dataZoom: names ? [] : [{ type: "inside", filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseMove: false, preventDefaultMouseMove: false }],
      toolbox: names ? undefined : { itemSize: 0, left: -50, feature: { dataZoom: { yAxisIndex: false, filterMode: "none" } } },
      tooltip: {
        trigger: lines ? "axis" : "item", confine: true, axisPointer: { type: "line", snap: true },
        formatter: (found) => {
          const items = (Array.isArray(found) ? found : [found]).filter((p) => p.seriesType !== "custom" && Array.isArray(p.data));
          if (!items.length) return "";
          const at = items[0].data[0];
          const title = lines ? `${chart.x_label} ${names ? names[at] : tick(at)}`
            : chart.series[items[0].seriesName].labels ? chart.series[items[0].seriesName].labels[items[0].data[2]] : chart.series[items[0].seriesName].name;
          const rows = items.map((p) => {
            const s = chart.series[p.seriesName], k = p.data[2];
            return [s.name, ranged(p.data[1], s.low && s.low[k], s.high && s.high[k]), box.swatches[p.seriesName]];
          });
          if (!lines) {
            const p = items[0], s = chart.series[p.seriesName], k = p.data[2];
            return tip(title, [
              [chart.x_label, ranged(p.data[0], s.x_low && s.x_low[k], s.x_high && s.x_high[k])],
              [chart.y_label, ranged(p.data[1], s.low && s.low[k], s.high && s.high[k])],
            ]);
          }
          return tip(title, rows);
        },
      },
      series, height: 330,
    };
  }

  function chosen(chart, box) {
    const wanted = (box.wanted || "").toLowerCase();
    const all = chart.names.map((name, i) => i).filter((i) => chart.names[i].toLowerCase().includes(wanted));
    box.found = all.length;
    return wanted ? all.slice(0, MOST_ROWS) : chart.first.length ? chart.first : all.slice(0, MOST_ROWS);
  }

  function rowed(chart, box, pick) {
    const longest = Math.max(...pick.map((i) => chart.names[i].length), 4);
    // Whole pixels: a mark at 0 lies on the edge, and the mouse is at whole pixels.
    const width = Math.floor(Math.min(30 + 6.6 * Math.min(longest, 32), (longest > 20 ? 0.42 : 0.36) * box.clientWidth, 250));
    // Two lines fit beside a bar; a name that is longer than that is cut off.
    const overflow = 6.6 * longest < 1.9 * (width - 18) ? "break" : "truncate";
    return {
      grid: { left: width, right: 26, top: 30, bottom: 46, outerBoundsMode: "none" },
      yAxis: axis("category", undefined, undefined, { inverse: true, data: pick.map((i) => chart.names[i]),
        axisLabel: { color: css("--soft"), fontSize: 12, interval: 0, margin: 14, width: width - 18, overflow, lineHeight: 13 } }),
      height: 26 * pick.length + 84,
    };
  }

  function rows(chart, box) {
    const pick = chosen(chart, box), series = [];
    if (chart.band) series.push(drawn((params, api) => {
      const area = params.coordSys, a = api.coord([chart.band[0], 0])[0], b = api.coord([chart.band[1], 0])[0];
      return { type: "rect", z2: -1, shape: { x: a, y: area.y, width: b - a, height: area.height }, style: { fill: css("--c2"), opacity: 0.13 } };
    }));
    if (chart.low) series.push({ type: "custom", name: "interval", z: 2, clip: true, encode: { x: [0, 2], y: 1 },
      data: pick.map((i, k) => [chart.low[i], k, chart.high[i], i]).filter((d) => d[0] !== null && d[2] !== null),
      renderItem: (params, api) => {
        const a = api.coord([api.value(0), api.value(1)]), b = api.coord([api.value(2), api.value(1)]);
        return { type: "rect", shape: { x: a[0], y: a[1] - 5, width: Math.max(b[0] - a[0], 2), height: 10, r: 3 },
          style: { fill: css("--c0"), opacity: 0.42 } };
      } });
    chart.marks.forEach((mark, m) => series.push({
      type: "scatter", name: String(m), z: 3, symbol: symbols[mark.marker], symbolSize: 11,
      itemStyle: hollow(mark.marker) ? { color: "transparent", borderColor: css(`--c${mark.colour}`), borderWidth: 2.4 } : { color: css(`--c${mark.colour}`) },
      data: pick.map((i, k) => [mark.values[i], k]).filter((d) => d[0] !== null),
    }));
    if (chart.reference) series.push(reference(chart.reference, true));
    return Object.assign(rowed(chart, box, pick), {
      xAxis: axis("value", chart.x_label, chart.axes.x, { nameLocation: "middle", nameGap: 28 }),
      legend: { show: false, data: ["interval", ...chart.marks.map((_, m) => String(m))] },
      tooltip: { trigger: "axis", confine: true, axisPointer: { type: "shadow", axis: "y" }, formatter: (found) => {
        const items = Array.isArray(found) ? found : [found];
        if (!items.length) return "";
        const i = pick[items[0].data[1]];
        const lines = chart.marks.map((mark, m) => [mark.name, figure(mark.values[i]), box.swatches[String(m)]]);
        if (chart.low) lines.unshift([chart.interval, chart.low[i] === null ? "—" : `${figure(chart.low[i])} to ${figure(chart.high[i])}`, box.swatches.interval]);
        return tip(chart.names[i], lines);
      } },
      series,
    });
  }

  function shares(chart, box) {
    const pick = chosen(chart, box), parts = Object.entries(chart.parts);
    return Object.assign(rowed(chart, box, pick), {
      xAxis: axis("value", chart.x_label, [0, 1], { nameLocation: "middle", nameGap: 28 }),
      legend: { show: false, data: parts.map((_, k) => String(k)) },
      tooltip: { trigger: "axis", confine: true, axisPointer: { type: "shadow" }, formatter: (found) => {
        const i = pick[found[0].dataIndex];
        return tip(chart.names[i], parts.map(([name, values], k) => [name, `${(100 * (values[i] || 0)).toFixed(1)}%`, box.swatches[String(k)]]));
      } },
      series: parts.map(([, values], k) => ({
        type: "bar", name: String(k), stack: "all", barWidth: 16, emphasis: { disabled: true },
        itemStyle: { color: css(`--h${k}`), borderColor: css("--paper"), borderWidth: 0.8 }, data: pick.map((i) => values[i]),
      })),
    });
  }

  // ---- charts in their place --------------------------------------------------------------------
  const kinds = { plot, rows, shares };
  const live = [];
  function render(one) {
    const option = kinds[one.chart.kind](one.chart, one.box);
    one.box.style.height = `${option.height}px`;
    delete option.height;
    one.view.resize();
    option.animation = false;
    option.textStyle = { fontFamily: getComputedStyle(document.body).fontFamily };
    option.tooltip.backgroundColor = css("--panel");
    option.tooltip.borderColor = css("--line");
    option.tooltip.textStyle = { color: css("--ink") };
    option.legend.selected = Object.fromEntries([...one.hidden].map((key) => [key, false]));
    one.view.setOption(option, true);
    if (option.toolbox) one.view.dispatchAction({ type: "takeGlobalCursor", key: "dataZoomSelect", dataZoomSelectActive: true });
  }

  function tools(one, figureBox) {
    const bar = element("div", undefined, "tools");
    if (one.chart.names && one.chart.names.length > 12) {
      const label = element("label", "Show names with "), input = element("input"), count = element("span");
      input.type = "search";
      count.setAttribute("role", "status");
      label.append(input);
      input.addEventListener("input", () => {
        one.box.wanted = input.value;
        render(one);
        const many = one.box.found > MOST_ROWS ? `, the first ${MOST_ROWS} are drawn` : "";
        count.textContent = input.value ? `${one.box.found} found${many}` : "";
        for (const row of figureBox.querySelectorAll("tbody tr"))
          row.hidden = !row.cells[0].textContent.toLowerCase().includes(input.value.toLowerCase());
      });
      bar.append(label, count);
    } else if (one.chart.kind === "plot" && !one.chart.x_names) {
      const button = element("button", "Show all again");
      button.type = "button";
      button.hidden = true;
      button.addEventListener("click", () => {
        one.view.dispatchAction({ type: "dataZoom", start: 0, end: 100 });
        button.hidden = true;
      });
      one.view.on("datazoom", () => {
        const zoom = one.view.getOption().dataZoom;
        button.hidden = !zoom.some((z) => z.start > 0.01 || z.end < 99.99);
      });
      bar.append(button);
    }
    if (bar.childNodes.length) one.box.before(bar);
  }

  function legend(one, figureBox) {
    one.box.swatches = Object.create(null); // a group may be called __proto__
    for (const item of figureBox.querySelectorAll(".legend li[data-key]")) {
      const keys = item.dataset.key.split(" "), button = element("button");
      for (const key of keys) one.box.swatches[key] = item.querySelector("svg");
      button.type = "button";
      button.setAttribute("aria-pressed", "true");
      button.append(...item.childNodes);
      button.addEventListener("click", () => {
        const off = !one.hidden.has(keys[0]);
        button.setAttribute("aria-pressed", String(!off));
        for (const key of keys) {
          if (off) one.hidden.add(key); else one.hidden.delete(key);
          one.view.dispatchAction({ type: off ? "legendUnSelect" : "legendSelect", name: key });
        }
      });
      item.append(button);
    }
  }

  for (const figureBox of document.querySelectorAll("figure[data-chart]")) {
    const chart = data.charts[Number(figureBox.dataset.chart)];
    const still = figureBox.querySelector(".still"), box = element("div", undefined, "live");
    box.setAttribute("role", "img");
    box.setAttribute("aria-label", `${chart.title}. ${chart.text}`);
    still.before(box);
    still.style.display = "none";
    box.style.height = "330px";
    const one = { chart, box, hidden: new Set(), view: echarts.init(box, null, { renderer: "svg" }) };
    legend(one, figureBox);
    tools(one, figureBox);
    render(one);
    live.push(one);
  }
  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    live.forEach(render);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => live.forEach(render));
  root.dataset.ready = String(live.length);
})();
