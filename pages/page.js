// Draws the figures of a page with Apache ECharts. The data of a figure is in the JSON of the
// element "figures", under the name that its element has in data-figure; data-kind says which of
// the functions in `kinds` draws it.
//
// A kind is a function (data, place) -> drawing:
//   option    what ECharts draws
//   height    in pixels
//   items     what the arrow keys step through: [{series, index, text}]
//   choices   [{label, names, chosen, choose(i)}]: controls above the figure
//   canvas    draws pixels instead of SVG: for thousands of shapes
//   zooms     the chart has a time axis that + and - zoom
//   click     gets what was clicked
// `place` has the width and the colours of the page. Everything that is shown comes in through
// textContent or a canvas, never as HTML.
'use strict';
(() => {
  const figures = JSON.parse(document.getElementById('figures').textContent);
  const said = document.getElementById('said');

  // ---- colours: sim/base/palette.h ----

  const palette = JSON.parse(document.getElementById('palette').textContent);
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const isDark = () => style('--scheme') === 'dark';
  const shade = (pair) => pair[isDark() ? 1 : 0];
  const seriesColour = (i) => shade(palette.series[i % palette.series.length]);
  const axisOf = (part) => part.startsWith('exposed ') ? part.slice(8) : undefined;
  // The colour of a role; of what has none, that of the i-th series.
  const colourOf = (role, i) => {
    const pair = palette.roles[axisOf(role) || role];
    return pair ? shade(pair) : seriesColour(i || 0);
  };
  // Communication that is waited for has stripes.
  const stripes = (colour, paper) => {
    const tile = document.createElement('canvas');
    tile.width = tile.height = 6;
    const pen = tile.getContext('2d');
    pen.fillStyle = paper;
    pen.fillRect(0, 0, 6, 6);
    pen.strokeStyle = colour;
    pen.lineWidth = 2.6;
    for (const shift of [-6, 0, 6]) {
      pen.beginPath();
      pen.moveTo(shift - 1, 7);
      pen.lineTo(shift + 7, -1);
      pen.stroke();
    }
    return {image: tile, repeat: 'repeat'};
  };
  const dashes = ['solid', 'dashed', 'dotted', [10, 4], [2, 2], [12, 3, 3, 3]];
  const symbols = ['circle', 'rect', 'triangle', 'diamond', 'pin', 'arrow', 'roundRect'];
  // ---- numbers in words: as pages/quantity_words.cc ----

  const significant = (value) => {
    if (value === 0) return '0';
    if (Math.abs(value) >= 1e15) return value.toExponential(3).replace('e+', 'e');
    const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
    let text = value.toFixed(Math.min(12, Math.max(0, 4 - whole)));
    if (text.includes('.')) text = text.replace(/\.?0+$/, '');
    const parts = text.split('.');
    parts[0] = parts[0].replace(/\B(?=(\d{3})+$)/g, ',');
    return parts.join('.');
  };
  const scaled = (value, units) => {
    if (value === 0) return '0 ' + units[0][1];
    const unit = units.find(([size]) => Math.abs(value) >= size) || units[units.length - 1];
    return significant(value / unit[0]) + ' ' + unit[1];
  };
  const seconds = (value) => scaled(value, [[1, 's'], [1e-3, 'ms'], [1e-6, 'us'], [1e-9, 'ns']]);
  const bytes = (value) => value === 0 ? '0 B' : scaled(
      value, [[1e15, 'PB'], [1e12, 'TB'], [1e9, 'GB'], [1e6, 'MB'], [1e3, 'KB'], [1, 'B']]);
  const rate = (value, unit) => scaled(value, [[1e15, 'P' + unit], [1e12, 'T' + unit],
    [1e9, 'G' + unit], [1e6, 'M' + unit], [1, unit]]);
  const percent = (fraction) => (100 * fraction).toFixed(1) + ' %';
  const signed = (fraction) => (fraction > 0 ? '+' : '') + (100 * fraction).toFixed(2) + ' %';
  const words = (key) => key.replace(/_/g, ' ');
  const shows = {seconds, bytes, percent, number: significant, signed,
                 days: (value) => significant(value) + ' days',
                 flops: (value) => rate(value, 'FLOP/s')};

  // ---- small parts ----

  const element = (tag, text, parent) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (parent) parent.appendChild(made);
    return made;
  };
  // A tooltip: the first line is its title.
  const tip = (lines) => {
    const box = element('div');
    box.className = 'tip';
    lines.filter((line) => line).forEach((line, i) => element(i === 0 ? 'b' : 'div', line, box));
    return box;
  };
  // The next of 1, 2, 2.5, 5, 10, ...: the end of an axis.
  const nice = (value) => {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return power * [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10].find((step) => step * power >= value * 0.9999);
  };
  const placeOf = (width) => ({
    width, narrow: width < 560, ink: style('--ink'), faint: style('--faint'), line: style('--line'),
    paper: style('--paper'), panel: style('--panel'), gap: style('--gap'),
    // Much stands out from the paper.
    scale: isDark() ? [...palette.loads].reverse() : palette.loads,
  });
  const base = (place) => ({
    animation: false,
    textStyle: {fontFamily: 'sans-serif', color: place.ink},
    tooltip: {
      confine: true, backgroundColor: place.panel, borderColor: place.line,
      textStyle: {color: place.ink, fontSize: 13}, extraCssText: 'white-space: normal',
    },
  });
  const axis = (place, more) => ({
    nameTextStyle: {color: place.faint},
    axisLabel: {color: place.ink, hideOverlap: true, ...(more.axisLabel || {})},
    axisLine: {lineStyle: {color: place.faint}},
    axisTick: {lineStyle: {color: place.faint}},
    splitLine: {lineStyle: {color: place.line}},
    ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== 'axisLabel')),
  });
  const legend = (place, more) => ({
    type: 'scroll', top: 4, left: 8, right: 8, textStyle: {color: place.ink},
    pageTextStyle: {color: place.ink}, pageIconColor: place.ink, pageIconInactiveColor: place.line,
    ...more,
  });
  const decals = {enabled: true, decal: {show: true}, label: {enabled: false}};
  const shortened = (text, most) => text.length > most ? text.slice(0, most - 1) + '\u2026' : text;

  // ---- bars: rows of stacked parts ----

  // {rows: [name], parts: [{name, values by row}], unit}
  const stackedBars = (data, place) => {
    const show = shows[data.unit || 'seconds'];
    const total = data.rows.map((_, i) => data.parts.reduce((sum, p) => sum + (p.values[i] || 0), 0));
    const most = Math.max(...total, 0);
    const text = (part, i) => `${data.rows[i]}, ${part.name}: ${show(part.values[i] || 0)}` +
        (total[i] > 0 ? `, ${percent((part.values[i] || 0) / total[i])}` : '');
    return {
      height: 100 + 34 * data.rows.length,
      option: {
        ...base(place), aria: decals,
        legend: legend(place, {data: data.parts.map((part) => part.name)}),
        grid: {left: 8, right: 24, top: 44, bottom: 28, containLabel: true},
        tooltip: {...base(place).tooltip, trigger: 'item', formatter: (p) => tip([
          data.rows[p.dataIndex], p.seriesName,
          `${show(p.value)} of ${show(total[p.dataIndex])}` +
              (total[p.dataIndex] > 0 ? `, ${percent(p.value / total[p.dataIndex])}` : '')])},
        xAxis: axis(place, {type: 'value', max: most || 1, splitNumber: place.narrow ? 3 : 6,
                            axisLabel: {showMaxLabel: false, formatter: (v) => show(v)}}),
        yAxis: axis(place, {type: 'category', inverse: true, data: data.rows, axisLabel: {
          width: place.narrow ? 90 : 200, overflow: 'truncate'}}),
        series: data.parts.map((part, i) => ({
          name: part.name, type: 'bar', stack: 'all', barMaxWidth: 26, data: part.values,
          itemStyle: {color: colourOf(part.name, i), borderColor: place.paper, borderWidth: 1},
        })),
      },
      items: data.rows.flatMap((_, i) => data.parts.map((part, series) => ({
        series, index: i, text: text(part, i), empty: !part.values[i],
      }))).filter((item) => !item.empty),
    };
  };

  const breakdown = (data, place) => {
    const stages = data.stages.names || [];
    const parts = data.mean.map((part) => {
      const same = (data.stages.parts || []).find((one) => one.name === part.name);
      return {name: part.name, values: [part.value, ...(same ? same.values : stages.map(() => 0))]};
    });
    return stackedBars({rows: ['all ranks', ...stages], parts, unit: 'seconds'}, place);
  };

  // ---- heat map of ranks ----

  const ranks = (data, place, state) => {
    const chosen = state.part || 0;
    const part = data.parts[chosen];
    const cells = [];
    data.rows.forEach((_, row) => part.values[row].forEach((value, column) => {
      if (value !== null) cells.push([column, row, value]);
    }));
    // Frames of stragglers lie on top.
    const slow = new Set(data.slow.map((one) => `${one[1]} ${one[0]}`));
    const isSlow = (cell) => slow.has(`${cell[0]} ${cell[1]}`);
    cells.sort((a, b) => isSlow(a) - isSlow(b));
    const values = cells.map((cell) => cell[2]);
    const low = Math.min(...values);
    const high = Math.max(...values);
    const text = ([column, row, value]) =>
      `${data.rows[row]}, rank ${data.first[row][column]}` +
      (data.together > 1 ? ` and up to ${data.together - 1} after it` : '') +
      `: ${part.name} ${seconds(value)}` + data.slow.filter((one) => one[0] === row && one[1] === column)
        .map((one) => `, rank ${one[2]} ${significant(one[3])} times slower`).join('');
    return {
      canvas: true,
      height: 130 + Math.max(22 * data.rows.length, 44),
      choices: [{label: 'Part of the step', names: data.parts.map((one) => one.name), chosen,
                 choose: (i) => { state.part = i; }}],
      option: {
        ...base(place),
        grid: {left: 8, right: 16, top: 12, bottom: 70, containLabel: true},
        tooltip: {...base(place).tooltip, formatter: (p) => tip(text(p.value).split(': '))},
        xAxis: axis(place, {type: 'category', name: 'rank of the stage', nameLocation: 'middle',
          nameGap: 24, data: [...Array(data.columns).keys()].map((i) => String(i * data.together)),
          splitLine: {show: false}}),
        yAxis: axis(place, {type: 'category', inverse: true, data: data.rows,
                            splitLine: {show: false}}),
        visualMap: {
          min: low, max: high > low ? high : low + Math.max(Math.abs(low), 1e-12) / 1e6,
          calculable: false, orient: 'horizontal', left: 'center', bottom: 0, itemWidth: 12,
          itemHeight: 140, inRange: {color: place.scale}, textStyle: {color: place.ink},
          text: [seconds(high), seconds(low)],
        },
        series: [{type: 'heatmap', data: cells.map((cell) => isSlow(cell)
          ? {value: cell, itemStyle: {borderColor: colourOf('fault'), borderWidth: 3}} : cell), itemStyle: {borderColor: place.paper,
          borderWidth: data.columns > 64 ? 0.5 : 1}, emphasis: {itemStyle: {borderColor: place.ink, borderWidth: 2}}}],
      },
      items: cells.map((cell, index) => ({series: 0, index, text: text(cell)})),
    };
  };

  // ---- Gantt chart ----

  const gantt = (data, place) => {
    const tick = data.tick_s;
    const at = (ticks) => seconds(ticks * tick);
    const axes = [...new Set(data.ranks.flatMap((rank) => rank.communication.map((c) => c.axis)))];
    const lane = place.narrow ? 26 : 34;
    const items = [];  // [row, begin, length, kind, index]
    const texts = [];
    data.ranks.forEach((rank, row) => {
      rank.passes.forEach((pass) => {
        const waits = [];
        for (let i = 0; i < pass[5].length; i += 2) {
          waits.push(`${data.parts[pass[5][i]]}: ${at(pass[5][i + 1])}`);
        }
        items.push([row, pass[0], pass[1], 0, pass[3]]);
        texts.push([data.texts[pass[2]], `${rank.name}, ${data.phases[pass[3]]}`,
          `${at(pass[0])} to ${at(pass[0] + pass[1])}: ${at(pass[1])}`,
          `computes ${at(pass[4])}`, ...waits]);
      });
      rank.gaps.forEach((gap) => {
        items.push([row, gap[0], gap[1], 1, gap[3]]);
        texts.push([data.texts[gap[2]], rank.name,
          `${at(gap[0])} to ${at(gap[0] + gap[1])}: ${at(gap[1])}`,
          `counts as ${data.parts[gap[3]]}`]);
      });
      rank.communication.forEach((one) => one.spans.forEach((span) => {
        items.push([row, span[0], span[1], 2, axes.indexOf(one.axis)]);
        texts.push([`communication: ${one.axis}`, rank.name,
                    `${at(span[0])} to ${at(span[0] + span[1])}: ${at(span[1])}`]);
      }));
      rank.critical.forEach((span) => {
        items.push([row, span[0], span[1], 3, 0]);
        texts.push(['on the critical path', rank.name,
                    `${at(span[0])} to ${at(span[0] + span[1])}: ${at(span[1])}`]);
      });
    });
    const order = items.map((_, i) => i).filter((i) => items[i][3] < 2).sort((a, b) =>
      items[a][0] - items[b][0] || items[a][1] - items[b][1]);
    const fills = data.parts.map((part, i) => axisOf(part)
      ? stripes(colourOf(part, i), place.paper) : colourOf(part, i));
    const draw = (params, api) => {
      const row = api.value(0);
      const begin = api.coord([api.value(1), row]);
      const end = api.coord([api.value(1) + api.value(2), row]);
      const height = api.size([0, 1])[1];
      const kind = api.value(3);
      const which = api.value(4);
      const top = begin[1] - height * 0.42;
      const thin = height * 0.2 / Math.max(axes.length, 1);
      const box = {x: begin[0], width: Math.max(end[0] - begin[0], 0.75), y: top, height: height * 0.5};
      const paint = {};
      if (kind === 0) paint.fill = colourOf(data.phases[which], which);
      if (kind === 1) {
        paint.fill = fills[which];
        box.y = top + height * 0.15;
        box.height = height * 0.2;
      }
      if (kind === 2) {
        paint.fill = colourOf(axes[which], which);
        box.y = top + height * 0.62 + which * thin;
        box.height = Math.max(thin - 1, 1);
      }
      if (kind === 3) {
        paint.fill = place.ink;
        box.y = top + height * 0.53;
        box.height = Math.max(height * 0.05, 1.5);
      }
      const area = params.coordSys;
      const shape = echarts.graphic.clipRectByRect(box, area);
      if (!shape) return null;
      const children = [{type: 'rect', shape, style: paint}];
      // Its name, where there is room.
      if (kind === 0 && shape.width > 26) {
        children[0].textContent = {type: 'text', style: {text: texts[params.dataIndex][0],
          fill: place.ink, stroke: place.paper, lineWidth: 2.5, fontSize: 11, width: shape.width - 4, overflow: 'truncate'}};
        children[0].textConfig = {position: 'inside'};
      }
      return {type: 'group', children};
    };
    // A legend that only says what the colours are.
    const phases = data.phases.map((name, i) => [name, colourOf(name, i)]);
    const parts = [...new Set(data.ranks.flatMap((rank) => rank.gaps.map((gap) => gap[3])))]
      .map((i) => [data.parts[i], colourOf(data.parts[i], i), !!axisOf(data.parts[i])]);
    const lanes = axes.map((name, i) => [`moves ${name}`, colourOf(name, i)]);
    return {
      canvas: true, zooms: true,
      height: 92 + data.ranks.length * (lane + 20),
      key: [...phases, ...parts, ...lanes, ['critical path', place.ink]],
      option: {
        ...base(place),
        grid: {left: 8, right: 16, top: 12, bottom: 56, containLabel: true},
        tooltip: {...base(place).tooltip, formatter: (p) => tip(texts[p.dataIndex])},
        xAxis: axis(place, {type: 'value', min: 0, max: data.end, axisLabel: {
          showMaxLabel: false, formatter: (v) => at(v)}, splitNumber: place.narrow ? 3 : 8}),
        yAxis: axis(place, {type: 'category', inverse: true, data: data.ranks.map((r) => r.name),
          splitLine: {show: true, lineStyle: {color: place.line}},
          axisLabel: {formatter: (name) => place.narrow ? name.replace(/ \(.*/, '') : name}}),
        dataZoom: [
          {type: 'inside', filterMode: 'none', minSpan: 0.02},
          {type: 'slider', filterMode: 'none', bottom: 12, height: 24, minSpan: 0.02,
           labelFormatter: (v) => at(v), textStyle: {color: place.ink}, borderColor: place.line,
           brushSelect: false},
        ],
        series: [{type: 'custom', renderItem: draw, data: items, encode: {x: [1], y: 0},
                  clip: true, progressive: 0}],
      },
      items: order.map((index) => ({series: 0, index, text: texts[index].join(', '),
                                    span: [items[index][1], items[index][2]]})),
      whole: data.end,
    };
  };

  // ---- memory over time ----

  const memory = (data, place, state) => {
    const chosen = state.rank || 0;
    const rank = data.ranks[chosen];
    const at = rank.at.map((ticks) => ticks * data.tick_s);
    const end = data.end * data.tick_s;
    const held = (category, i) => rank.held[category][i] * data.unit_bytes;
    const upTo = (last, i) => {
      let sum = 0;
      for (let c = 0; c <= last; ++c) sum += held(c, i);
      return sum;
    };
    const total = rank.at.map((_, i) => upTo(data.categories.length - 1, i));
    const peak = rank.peak_at * data.tick_s;
    const capacity = data.capacity * data.unit_bytes;
    const most = Math.max(...total);
    const lines = (i) => [`${seconds(at[i])}: ${bytes(total[i])}`, ...data.categories.map(
      (name, c) => held(c, i) > 0 ? `${words(name)}: ${bytes(held(c, i))}` : '')];
    return {
      height: place.narrow ? 320 : 380,
      choices: data.ranks.length > 1 ? [{label: 'Rank', names: data.ranks.map((one) => one.name),
        chosen, choose: (i) => { state.rank = i; }}] : [],
      option: {
        ...base(place), aria: decals,
        legend: legend(place, {data: data.categories.map(words), selectedMode: false,
                               icon: 'roundRect'}),
        grid: {left: 8, right: 24, top: 62, bottom: 28, containLabel: true},
        tooltip: {...base(place).tooltip, trigger: 'axis',
                  formatter: (p) => tip(lines(Math.min(p[0].dataIndex, at.length - 1)))},
        xAxis: axis(place, {type: 'value', min: 0, max: end, splitNumber: place.narrow ? 3 : 8,
                            axisLabel: {showMaxLabel: false, formatter: (v) => seconds(v)}}),
        yAxis: axis(place, {type: 'value', max: nice(capacity <= 4 * most ? Math.max(capacity, most) * 1.04 : most * 1.1),
                            axisLabel: {formatter: (v) => bytes(v)}}),
        // Each area reaches down to 0 and the lower ones lie on it.
        series: data.categories.map((name, c) => ({
          name: words(name), type: 'line', step: 'end', symbol: 'none', z: 20 - c,
          lineStyle: {width: 0.5, color: place.paper},
          itemStyle: {color: colourOf(name === 'optimizer' ? 'optimizer state' : words(name), c)},
          areaStyle: {opacity: 1},
          data: [...at.map((t, i) => [t, upTo(c, i)]), [end, upTo(c, at.length - 1)]],
          markLine: c > 0 ? undefined : {
            silent: true, symbol: 'none', label: {color: place.ink, formatter: (p) => p.name},
            lineStyle: {color: place.ink, type: 'dashed'},
            data: [{yAxis: capacity, name: `the chip has ${bytes(capacity)}`,
                    label: {position: 'insideEndTop'}},
                   {xAxis: peak, name: `peak at ${seconds(peak)}`, label: {
                     position: 'end', align: peak < end / 2 ? 'left' : 'right'}}],
          },
        })),
      },
      items: at.map((_, index) => ({series: 0, index, text: lines(index).filter((l) => l).join(', ')})),
    };
  };

  // ---- lines over time: links, occupancy ----

  // {end, x: 'seconds', y: 'percent', lines: [{name, at: [..], values: [..]}]}
  const timeLines = (data, place) => {
    const showX = shows[data.x || 'seconds'];
    const showY = shows[data.y || 'percent'];
    return {
      height: place.narrow ? 320 : 360,
      option: {
        ...base(place),
        legend: legend(place, {data: data.lines.map((line) => line.name)}),
        grid: {left: 8, right: 24, top: 48, bottom: 28, containLabel: true},
        tooltip: {...base(place).tooltip, trigger: 'axis', formatter: (points) => tip([
          showX(points[0].value[0]),
          ...points.map((p) => `${p.seriesName}: ${showY(p.value[1])}`)])},
        xAxis: axis(place, {type: data.log ? 'log' : 'value', min: data.begin || 0, max: data.end,
          splitNumber: place.narrow ? 3 : 8,
          axisLabel: {showMaxLabel: !!data.log, formatter: (v) => showX(v)}}),
        yAxis: axis(place, {type: 'value', min: data.low, max: data.high,
                            axisLabel: {formatter: (v) => showY(v)}}),
        series: data.lines.map((line, i) => ({
          name: line.name, type: 'line', step: data.step === false ? undefined : 'end',
          symbol: data.marks ? symbols[i % symbols.length] : 'none', symbolSize: 7,
          lineStyle: {width: 1.75, type: dashes[i % dashes.length]},
          itemStyle: {color: colourOf(line.name, i)},
          data: line.at.map((t, k) => [t, line.values[k]]),
        })),
      },
      items: data.lines.flatMap((line, series) => line.at.map((t, index) => ({
        series, index, text: `${line.name}, ${showX(t)}: ${showY(line.values[index])}`}))),
    };
  };

  const links = (data, place) => {
    const drawn = data.kinds.filter((kind) => kind.over_time);
    return timeLines({
      end: data.end_s, high: undefined,
      lines: drawn.map((kind) => {
        const bins = kind.over_time.length;
        return {name: kind.name, at: kind.over_time.map((_, i) => (i + 0.5) * data.end_s / bins),
                values: kind.over_time.map((hundredths) => hundredths / 1e4)};
      }),
      step: false,
    }, place);
  };

  // ---- the cluster ----

  const cluster = (data, place, state) => {
    const gap = 0.8;
    let y = 0;
    const rows = data.rows.map((row) => {
      const top = y;
      y += row.lines + gap + 0.9;
      return {...row, top: top + 0.9};
    });
    const cells = [];
    rows.forEach((row, r) => row.cells.forEach((cell, i) => {
      cells.push([cell[0], row.top + cell[1], cell[3], r, i]);
    }));
    // Colours go from the least load to the most, of all nodes or of a kind.
    const range = (list) => [Math.min(...list), Math.max(...list)];
    const whole = range(cells.map((cell) => cell[2]));
    const ofKind = rows.map((row) => range(row.cells.map((cell) => cell[3])));
    if (state.own === undefined) {
      state.own = ofKind.some(([low, high]) => high > 0 && high - low > 0.02 * high);
    }
    const stop = (load, [low, high]) => place.scale[high > low ? Math.min(place.scale.length - 1,
      Math.max(0, Math.floor((load - low) / (high - low) * place.scale.length))) :
      Math.floor(place.scale.length / 2)];
    const rangeText = ([low, high]) => percent(low) === percent(high) ? percent(high)
      : `${percent(low)} to ${percent(high)}`;
    const faulty = (capacity) => capacity > 0 ? `has ${percent(capacity)} of its bandwidth` : 'is down';
    const signs = (r, i) => [
      ...data.slow.filter((one) => one[0] === r && one[1] === i)
        .map((one) => `rank ${one[2]}: ${significant(one[3])} times slower`),
      ...data.faults.filter((one) => (one[0] === r && one[1] === i) || (one[2] === r && one[3] === i))
        .map((one) => `${one[4]} ${faulty(one[5])}`)];
    const text = (cell) => {
      const row = rows[cell[3]];
      const name = row.cells[cell[4]][2];
      return [row.together > 1 ? `${name} and up to ${row.together - 1} after it` : name,
              `busiest link: ${percent(cell[2])}`, ...signs(cell[3], cell[4])];
    };
    const frames = [...new Set(data.slow.map((one) => `${one[0]} ${one[1]}`))]
      .map((at) => at.split(' ').map(Number));
    const centre = (r, i) => [rows[r].cells[i][0], rows[r].top + rows[r].cells[i][1]];
    const ends = (join) => [...centre(join[0], join[1]), ...centre(join[2], join[3]), join[4], join[5]];
    const joins = data.joins.map(ends);
    const faults = data.faults.map(ends);
    const lines = y;
    const pitch = Math.max(3, Math.min(22, (place.width - 40) / data.columns));
    const tall = Math.max(9, Math.min(pitch, 13));
    return {
      canvas: true,
      height: Math.round(70 + Math.max(lines * tall, 60)),
      choices: [{label: 'Colours', names: ['from least to most of all', 'from least to most of a kind'],
                 chosen: state.own ? 1 : 0, choose: (i) => { state.own = i === 1; }}],
      key: [...(faults.length ? [['link down or slow', colourOf('fault'), true]] : []),
            ...(frames.length ? [['straggler', colourOf('fault')]] : [])],
      option: {
        ...base(place),
        grid: {left: 16, right: 16, top: 6, bottom: 56},
        tooltip: {...base(place).tooltip, formatter: (p) => tip(text(p.value))},
        xAxis: {type: 'value', min: -1, max: data.columns, show: false},
        yAxis: {type: 'value', min: -0.5, max: lines, inverse: true, show: false},
        visualMap: {
          min: 0, max: 1, show: true, seriesIndex: [], orient: 'horizontal', left: 'center',
          bottom: 0, itemWidth: 12, itemHeight: 140, inRange: {color: place.scale},
          textStyle: {color: place.ink}, calculable: false,
          text: state.own ? ['most of its kind', 'least'] : [percent(whole[1]), percent(whole[0])],
        },
        series: [{
          type: 'custom', silent: true, data: joins, z: 1,
          renderItem: (params, api) => {
            const from = api.coord([api.value(0), api.value(1)]);
            const to = api.coord([api.value(2), api.value(3)]);
            return {type: 'line', shape: {x1: from[0], y1: from[1], x2: to[0], y2: to[1]},
                    style: {stroke: stop(api.value(4), whole), lineWidth: 1, opacity: 0.55}};
          },
        }, {
          type: 'custom', data: cells, z: 2, encode: {x: 0, y: 1},
          renderItem: (params, api) => {
            const [x, yy] = api.coord([api.value(0), api.value(1)]);
            const [w, h] = api.size([0.86, 0.86]);
            const wide = Math.max(2, Math.min(w, 44));
            return {type: 'rect', shape: {x: x - wide / 2, y: yy - h / 2, width: wide, height: h},
                    style: {fill: stop(api.value(2), state.own ? ofKind[api.value(3)] : whole),
                            stroke: place.faint, lineWidth: 0.4}};
          },
        }, {
          type: 'custom', silent: true, z: 3, data: rows.map((row) => [-0.5, row.top - 0.95]),
          renderItem: (params, api) => {
            const [x, yy] = api.coord([api.value(0), api.value(1)]);
            const row = rows[params.dataIndex];
            return {type: 'text', x, y: yy, style: {fill: place.ink, fontSize: 11, textVerticalAlign: 'middle',
              text: `${row.kind} (${significant(row.count)}): ${rangeText(ofKind[params.dataIndex])}`,
              stroke: place.paper, lineWidth: 3}};
          },
        }, {
          type: 'custom', silent: true, data: faults, z: 4,
          renderItem: (params, api) => {
            const from = api.coord([api.value(0), api.value(1)]);
            const to = api.coord([api.value(2), api.value(3)]);
            return {type: 'line', shape: {x1: from[0], y1: from[1], x2: to[0], y2: to[1]},
                    style: {stroke: colourOf('fault'), lineWidth: 2.5, lineDash: [5, 3]}};
          },
        }, {
          type: 'custom', silent: true, z: 5, data: frames.map(([r, i]) => centre(r, i)),
          renderItem: (params, api) => {
            const [x, yy] = api.coord([api.value(0), api.value(1)]);
            const [w, h] = api.size([1, 1]);
            const wide = Math.max(4, Math.min(w, 46));
            return {type: 'rect', shape: {x: x - wide / 2, y: yy - h / 2, width: wide, height: h},
                    style: {fill: 'none', stroke: colourOf('fault'), lineWidth: 2.5}};
          },
        }],
      },
      items: cells.map((cell, index) => ({series: 1, index, text: text(cell).join(', ')})),
    };
  };

  // ---- roofline ----

  const roofline = (data, place) => {
    const points = data.kernels.filter((k) => k.flops > 0 && k.bytes > 0 && k.time_s > 0)
      .map((k) => ({...k, x: k.flops / k.bytes, y: k.flops / k.time_s}));
    const types = [...new Set(points.map((p) => p.type))];
    const xs = points.map((p) => p.x);
    const ys = points.map((p) => p.y);
    const ridge = data.peaks.map((p) => p.flops_per_s / data.memory_bandwidth_bytes_per_s);
    const tens = (value, up) => 10 ** (up ? Math.ceil(Math.log10(value)) : Math.floor(Math.log10(value)));
    const left = tens(Math.min(...xs, ...ridge, 1), false);
    const right = tens(Math.max(...xs, ...ridge, 10) * 2, true);
    const top = tens(Math.max(...data.peaks.map((p) => p.flops_per_s), ...ys, 1e9) * 1.5, true);
    const bottom = tens(Math.min(...ys, left * data.memory_bandwidth_bytes_per_s * 10), false);
    const text = (p) => [p.name, `${p.type}, bound by ${p.bound}`,
      `${rate(p.y, 'FLOP/s')} at ${significant(p.x)} FLOPs a byte`,
      `${seconds(p.time_s)} each, ${significant(p.count)} a step, ${percent(p.share)} of compute`];
    const roofs = data.peaks.map((peak, i) => ({
      name: `${peak.type}: ${rate(peak.flops_per_s, 'FLOP/s')}`, type: 'line', symbol: 'none',
      silent: true, lineStyle: {color: place.ink, type: dashes[i % dashes.length], width: 1.5},
      itemStyle: {color: place.ink},
      data: [[Math.max(left, bottom / data.memory_bandwidth_bytes_per_s), Math.max(bottom, left * data.memory_bandwidth_bytes_per_s)],
             [ridge[i], peak.flops_per_s], [right, peak.flops_per_s]],
      endLabel: {show: false},
    }));
    return {
      height: place.narrow ? 380 : 460,
      option: {
        ...base(place),
        legend: legend(place, {}),
        grid: {left: 12, right: 24, top: 52, bottom: 34, containLabel: true},
        tooltip: {...base(place).tooltip, formatter: (p) => p.data.kernel ? tip(text(p.data.kernel)) : ''},
        xAxis: axis(place, {type: 'log', min: left, max: right, name: 'FLOPs a byte',
          nameLocation: 'middle', nameGap: 26, axisLabel: {formatter: (v) => significant(v)}}),
        yAxis: axis(place, {type: 'log', min: bottom, max: top,
                            axisLabel: {formatter: (v) => rate(v, 'FLOP/s')}}),
        series: [...types.map((type, i) => ({
          name: `kernels in ${type}`, type: 'scatter', symbol: symbols[i % symbols.length],
          itemStyle: {color: seriesColour(i), opacity: 0.75, borderColor: place.ink, borderWidth: 0.5},
          data: points.filter((p) => p.type === type).map((p) => ({
            value: [p.x, p.y], kernel: p,
            symbolSize: 6 + (place.narrow ? 16 : 34) * Math.sqrt(p.share)})),
        })), ...roofs],
      },
      items: types.flatMap((type, series) => points.filter((p) => p.type === type).map((p, index) => ({
        series, index, text: text(p).join(', ')}))),
    };
  };

  // ---- tornado ----

  const tornado = (data, place) => {
    const rows = data.rows;
    const bars = (name, key) => ({
      name, type: 'bar', stack: 'all', barMaxWidth: 20, data: rows.map((row) => row[key]),
      itemStyle: {color: colourOf(key)},
    });
    const most = Math.max(...rows.flatMap((row) => [Math.abs(row.less), Math.abs(row.more)]), 1e-4) * 1.1;
    return {
      height: 96 + 26 * rows.length,
      option: {
        ...base(place), aria: decals,
        legend: legend(place, {data: ['10 % less', '10 % more']}),
        grid: {left: 8, right: 24, top: 44, bottom: 28, containLabel: true},
        tooltip: {...base(place).tooltip, trigger: 'axis', axisPointer: {type: 'shadow'},
                  formatter: (p) => tip([rows[p[0].dataIndex].name,
                    `10 % less: ${signed(rows[p[0].dataIndex].less)}`,
                    `10 % more: ${signed(rows[p[0].dataIndex].more)}`])},
        xAxis: axis(place, {type: 'value', min: -most, max: most, splitNumber: place.narrow ? 2 : 6, axisLabel: {
          showMinLabel: false, showMaxLabel: false, formatter: (v) => (v > 0 ? '+' : '') + significant(Math.round(v * 1e4) / 100) + ' %'}}),
        yAxis: axis(place, {type: 'category', inverse: true, data: rows.map((row) => row.name),
                            axisLabel: {width: place.narrow ? 128 : 200, overflow: 'truncate'}}),
        series: [bars('10 % less', 'less'), bars('10 % more', 'more')],
      },
      items: rows.map((row, index) => ({series: 0, index,
        text: `${row.name}: with 10 % less ${signed(row.less)}, with 10 % more ${signed(row.more)}`})),
    };
  };

  // ---- differences: bars to both sides ----

  // {rows: [{name, value in seconds}]}
  const differences = (data, place) => {
    const rows = data.rows;
    const most = Math.max(...rows.map((row) => Math.abs(row.value)), 1e-12) * 1.1;
    const text = (row) => `${row.name}: ${row.value > 0 ? '+' : ''}${seconds(row.value)}`;
    return {
      height: 70 + 26 * rows.length,
      option: {
        ...base(place),
        grid: {left: 8, right: 24, top: 12, bottom: 28, containLabel: true},
        tooltip: {...base(place).tooltip, formatter: (p) => tip(text(rows[p.dataIndex]).split(': '))},
        xAxis: axis(place, {type: 'value', min: -most, max: most, splitNumber: place.narrow ? 2 : 6,
          axisLabel: {showMinLabel: false, showMaxLabel: false, formatter: (v) => seconds(v)}}),
        yAxis: axis(place, {type: 'category', inverse: true, data: rows.map((row) => row.name),
                            axisLabel: {width: place.narrow ? 128 : 200, overflow: 'truncate'}}),
        series: [{type: 'bar', barMaxWidth: 20, data: rows.map((row) => ({
          value: row.value, itemStyle: {color: colourOf(row.value > 0 ? 'less' : 'more')}}))}],
      },
      items: rows.map((row, index) => ({series: 0, index, text: text(row)})),
    };
  };

  // ---- points ----

  // {x: {name, unit, log}, y: likewise, same: true where both are the same quantity,
  //  series: [{name, colour: its number, joined, straight: joined without steps,
  //            points: [{x, y, lines: [text], command}]}]}
  const points = (data, place) => {
    const showX = shows[data.x.unit];
    const showY = shows[data.y.unit];
    const all = data.series.flatMap((one) => one.points);
    // Whole decades are too coarse for points that are close together.
    const span = (values, log) => {
      const low = Math.min(...values);
      const high = Math.max(...values);
      const room = log ? (high / low) ** 0.06 * 1.02 : (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
      return log ? [low / room, high * room] : [Math.max(0, low - room), high + room];
    };
    let [left, right] = span(all.map((p) => p.x), data.x.log);
    let [bottom, top] = span(all.map((p) => p.y), data.y.log);
    if (data.same) {
      left = bottom = Math.min(left, bottom);
      right = top = Math.max(right, top);
    }
    const kept = (value) => Number(value.toPrecision(2));
    const scaleOf = (one, from, to, more) => axis(place, {
      type: one.log ? 'log' : 'value', min: kept(from), max: kept(to), name: one.name,
      axisLabel: {formatter: (v) => shows[one.unit](v), hideOverlap: true, ...(more.axisLabel || {})},
      ...Object.fromEntries(Object.entries(more).filter(([key]) => key !== 'axisLabel'))});
    const marks = data.series.map((one, i) => ({
      name: one.name, type: one.joined ? 'line' : 'scatter', step: one.joined && !one.straight ? 'end' : undefined,
      symbol: symbols[i % symbols.length], symbolSize: one.joined ? 11 : 9, showSymbol: true,
      itemStyle: {color: seriesColour(one.colour ?? i), opacity: 0.85, borderColor: place.ink, borderWidth: 0.5},
      lineStyle: {color: seriesColour(one.colour ?? i), width: 1.5, type: dashes[i % dashes.length]},
      data: one.points.map((p) => ({value: [p.x, p.y], point: p})),
    }));
    const diagonal = {
      name: 'equal', type: 'line', symbol: 'none', silent: true, z: 1,
      lineStyle: {color: place.ink, type: 'dashed', width: 1}, itemStyle: {color: place.ink},
      data: [[kept(left), kept(left)], [kept(right), kept(right)]],
    };
    return {
      height: place.narrow ? 360 : 440,
      option: {
        ...base(place),
        legend: legend(place, {}),
        grid: {left: 12, right: 28, top: 66, bottom: 36, containLabel: true},
        tooltip: {...base(place).tooltip, formatter: (p) => p.data.point ? tip(p.data.point.lines) : ''},
        xAxis: scaleOf(data.x, left, right, {nameLocation: 'middle', nameGap: 28}),
        yAxis: scaleOf(data.y, bottom, top, {nameLocation: 'end', nameGap: 10,
          nameTextStyle: {color: place.faint, align: 'left', padding: [0, 0, 0, -30]}}),
        series: data.same ? [...marks, diagonal] : marks,
      },
      items: data.series.flatMap((one, series) => one.points.map((p, index) => ({
        series, index, text: p.lines.join(', '), command: p.command}))),
      click: data.series.some((one) => one.points.some((p) => p.command)) ? (item, one) => {
        if (!item || !item.command) return;
        if (!one.chosen) {
          one.chosen = element('pre');
          one.chosen.tabIndex = 0;
          one.element.after(one.chosen);
        }
        one.chosen.textContent = item.command;
        said.textContent = item.command;
      } : undefined,
    };
  };

  const kinds = {breakdown, ranks, gantt, memory, links, cluster, roofline, tornado,
                 bars: stackedBars, lines: timeLines, points, differences};

  // ---- drawing, keys, print, dark mode ----

  const charts = [];

  const show = (one, item) => {
    one.chart.dispatchAction({type: 'showTip', seriesIndex: item.series, dataIndex: item.index});
    said.textContent = item.text;
  };

  const zoom = (one, factor, shift) => {
    const now = one.chart.getOption().dataZoom[0];
    const middle = (now.start + now.end) / 2 + shift * (now.end - now.start);
    const half = Math.min(50, (now.end - now.start) / 2 * factor);
    const start = Math.max(0, Math.min(100 - 2 * half, middle - half));
    one.chart.dispatchAction({type: 'dataZoom', start, end: start + 2 * half});
  };

  // Keeps a slice in sight.
  const reveal = (one, item) => {
    if (!item.span) return;
    const now = one.chart.getOption().dataZoom[0];
    const from = 100 * item.span[0] / one.drawing.whole;
    const to = 100 * (item.span[0] + item.span[1]) / one.drawing.whole;
    if (from >= now.start && to <= now.end) return;
    const width = now.end - now.start;
    const start = Math.max(0, Math.min(100 - width, (from + to) / 2 - width / 2));
    one.chart.dispatchAction({type: 'dataZoom', start, end: start + width});
  };

  const key = (one, event) => {
    const items = one.drawing.items || [];
    const last = items.length - 1;
    const moves = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: 10, ArrowUp: -10};
    if (event.key in moves && items.length > 0) {
      const to = one.at === undefined ? 0 : one.at + moves[event.key];
      one.at = Math.max(0, Math.min(last, to));
      reveal(one, items[one.at]);
      show(one, items[one.at]);
    } else if (event.key === 'Home' && items.length > 0) {
      one.at = 0;
      if (one.drawing.zooms) one.chart.dispatchAction({type: 'dataZoom', start: 0, end: 100});
      show(one, items[0]);
    } else if (event.key === 'Escape') {
      one.chart.dispatchAction({type: 'hideTip'});
    } else if (event.key === 'Enter' && one.drawing.click && one.at !== undefined) {
      one.drawing.click(items[one.at], one);
    } else if (one.drawing.zooms && (event.key === '+' || event.key === '=')) {
      zoom(one, 0.5, 0);
    } else if (one.drawing.zooms && event.key === '-') {
      zoom(one, 2, 0);
    } else {
      return;
    }
    event.preventDefault();
  };

  const controls = (one) => {
    const choices = one.drawing.choices || [];
    const entries = one.drawing.key || [];
    if (one.controls) one.controls.remove();
    if (choices.length === 0 && entries.length === 0 && !one.drawing.zooms) return;
    one.controls = element('div');
    one.controls.className = 'controls';
    for (const choice of choices) {
      const label = element('label', choice.label + ' ', one.controls);
      const select = element('select', undefined, label);
      choice.names.forEach((name, i) => {
        const option = element('option', name, select);
        option.value = String(i);
        option.selected = i === choice.chosen;
      });
      select.addEventListener('change', () => {
        choice.choose(Number(select.value));
        one.at = undefined;
        draw(one);
        one.controls.querySelector('select').focus();
      });
    }
    if (one.drawing.zooms) {
      for (const [name, factor] of [['Zoom in', 0.5], ['Zoom out', 2], ['Whole', 1000]]) {
        const button = element('button', name, one.controls);
        button.type = 'button';
        button.addEventListener('click', () => zoom(one, factor, 0));
      }
    }
    for (const [name, colour, striped] of entries) {
      const entry = element('span', undefined, one.controls);
      const box = element('span', undefined, entry);
      box.setAttribute('aria-hidden', 'true');
      box.style.cssText = 'display:inline-block;width:0.8em;height:0.8em;margin-right:0.3em;' +
        'border:1px solid var(--faint)';
      box.style.background = striped ?
        `repeating-linear-gradient(135deg, ${colour} 0 2px, transparent 2px 4px)` : colour;
      element('span', name, entry);
    }
    one.element.before(one.controls);
  };

  const draw = (one, width) => {
    const room = width || one.element.clientWidth || 800;
    one.drawing = kinds[one.element.dataset.kind](one.data, placeOf(room), one.state);
    if (one.chart) one.chart.dispose();
    one.element.style.height = one.drawing.height + 'px';
    one.chart = echarts.init(one.element, null, {
      renderer: one.drawing.canvas ? 'canvas' : 'svg', width: width || undefined,
      height: one.drawing.height,
      devicePixelRatio: one.drawing.canvas ? Math.max(2, window.devicePixelRatio) : undefined});
    one.chart.setOption(one.drawing.option);
    if (one.drawing.click) one.chart.on('click', (p) => one.drawing.click(
      one.drawing.items.find((i) => i.series === p.seriesIndex && i.index === p.dataIndex), one));
    controls(one);
  };

  const drawAll = (width) => charts.forEach((one) => draw(one, width));

  for (const place of document.querySelectorAll('.chart')) {
    const data = figures[place.dataset.figure];
    const one = {element: place, data, state: {}};
    place.addEventListener('keydown', (event) => key(one, event));
    charts.push(one);
  }
  drawAll();
  document.documentElement.dataset.drawn = String(charts.length);

  let width = document.body.clientWidth;
  let later = 0;
  new ResizeObserver(() => {
    if (document.body.clientWidth === width || document.documentElement.dataset.theme) return;
    width = document.body.clientWidth;
    clearTimeout(later);
    later = setTimeout(() => drawAll(), 100);
  }).observe(document.body);
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => drawAll());
  // Paper is white, and 17 cm wide between its margins.
  window.addEventListener('beforeprint', () => {
    document.documentElement.dataset.theme = 'light';
    drawAll(660);
  });
  window.addEventListener('afterprint', () => {
    delete document.documentElement.dataset.theme;
    drawAll();
  });
})();
