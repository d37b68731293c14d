// The map of all tiles, with a column for each, and the contents of the chosen tile.

/** The ranges of tiles that have the same limit. @returns {{ipu: ?number, first: number, end: number, limit: number, at: string}[]} */
const ipusOfTiles = () => {
  const count = report.memory.tiles?.total.length ?? 0;
  if (!report.fit) return [{ ipu: null, first: 0, end: count, limit: report.memory.limit, at: '/memory/limit' }];
  const each = Math.max(report.fit.tiles_per_ipu, 1);
  return report.fit.ipus.map((own, place) => ({
    ipu: own.ipu, first: place * each, end: Math.min((place + 1) * each, count), limit: own.fullest_tile.limit, at: `/fit/ipus/${place}/fullest_tile/limit`,
  })).filter((own) => own.first < own.end);
};

/** @param {HTMLElement} parent */
const addTileMap = (parent) => {
  const { tiles, tile_map: map } = report.memory;
  const ipus = ipusOfTiles();
  if (!tiles?.total.length || !ipus.length) return;
  const part = addPart(parent, 'tile-map', 'Tiles');
  if (isHuge) return void add(part, 'p', 'The map cannot be drawn: a number is too large for a browser.', 'soft');
  const { total, with_gaps: withGaps } = tiles;
  const categories = map?.categories ?? [];
  /** The bytes of a category on a tile at addresses that no other variable shares. @param {Json.TileCategory} own @param {number} tile */
  const alone = (own, tile) => Math.max((own.bytes[tile] ?? 0) - (own.overlapped?.[tile] ?? 0), 0);
  const rest = categories.slice(14);
  /** The stack of a tile, from the bottom up; `next` is the top of a layer that lies on `below` bytes. @type {{look: string, name: string, next: (tile: number, below: number) => number}[]} */
  const layers = categories.slice(0, 14).map((own) => ({ look: lookOf(own.name), name: own.name, next: (tile, below) => below + alone(own, tile) }));
  if (rest.length) layers.push({ look: 'tile-others', name: rest.map((own) => own.name).join(', '), next: (tile, below) => rest.reduce((sum, own) => sum + alone(own, tile), below) });
  layers.push({
    look: 'tile-shared', name: !map ? 'Bytes in use' : map.left_out ? 'Shared addresses, and categories left out' : 'Shared addresses',
    next: (tile, below) => Math.max(below, total[tile]),
  });
  if (withGaps) layers.push({ look: 'gaps', name: 'Fragmentation', next: (tile, below) => Math.max(below, withGaps[tile] ?? 0) });
  const ipuOf = (/** @type {number} */ tile) => ipus.find((own) => own.first <= tile && tile < own.end) ?? ipus[0];
  const own = () => chosen.tile !== null && chosen.tile < total.length ? chosen.tile : tiles.fullest;
  /** The number of a tile in words; with several IPUs, also its number on its IPU. @param {number} tile */
  const nameOf = (tile) => `tile ${grouped(tile)}${ipus.length > 1 ? `: tile ${grouped(tile - ipuOf(tile).first)} of IPU ${ipuOf(tile).ipu}` : ''}`;

  const controls = add(part, 'div', '', 'controls');
  const ipu = addSelect(controls, 'IPU', 'tile-map-ipu', [['-1', 'all IPUs'], ...ipus.map((one, place) => /** @type {[string, string]} */ ([String(place), `IPU ${one.ipu}`]))], () => {
    arrange();
    if (!places.has(own())) choose({ tile: all.reduce((most, tile) => total[tile] > total[most] ? tile : most) });
  });
  /** @type {HTMLElement} */ (ipu.parentElement).hidden = ipus.length < 2;
  const order = addSelect(controls, 'Order', 'tile-map-order', [['number', 'by number'], ['fullest', 'fullest first']], () => arrange());
  const field = addField(controls, 'Tile', 'number', 'tile-map-tile', () => {
    if (field.validity.valid && field.value) choose({ tile: field.valueAsNumber });
  }, { min: 0, max: total.length - 1, step: 1 });
  addLegend(part, layers.map(({ look, name }) => [look, name]));
  const host = add(part, 'div');
  /** @type {number[]} */
  let all = [];
  let places = new Map();

  /** Draws the tiles of the IPU in the chosen order. */
  const arrange = () => {
    const shown = ipu.value === '-1' ? ipus : [ipus[Number(ipu.value)]];
    all = shown.flatMap((one) => Array.from({ length: one.end - one.first }, (_, place) => one.first + place));
    if (order.value === 'fullest') all.sort((a, b) => total[b] - total[a] || a - b);
    places = new Map(all.map((tile, place) => [tile, place]));
    host.replaceChildren();
    const limit = Math.max(...shown.map((one) => one.limit));
    const plot = addPlot(host, {
      id: 'tile-map-plot', label: 'Memory of each tile', unit: 'tile', height: 280, first: 0, last: all.length - 1, limit,
      named: (place) => grouped(all[place] ?? 0),
      value: () => places.get(own()) ?? null, choose: (place) => choose({ tile: all[place] }),
      bands: () => order.value === 'number' && shown.length > 1 ? shown.map((one, place) => ({ from: places.get(one.first) ?? 0, to: places.get(one.end - 1) ?? 0, name: `IPU ${one.ipu}`, isOther: place % 2 === 1 })) : [],
      said: (place) => `${nameOf(all[place])}\n${grouped(total[all[place]])} bytes in use, ${ofLimit(total[all[place]], ipuOf(all[place]).limit)} of the limit`,
      range: (from, to) => {
        let least = Infinity, most = 0;
        for (const tile of all.slice(from, to + 1)) {
          least = Math.min(least, total[tile]);
          most = Math.max(most, total[tile], withGaps?.[tile] ?? 0);
        }
        return [least, most];
      },
      paint: (inner, scale) => {
        const visible = all.slice(scale.from, scale.to + 1);
        const most = Math.min(visible.length, Math.max(Math.floor(scale.width), 50));
        // Of several tiles in one pixel, the fullest is drawn.
        const columns = Array.from({ length: most }, (_, column) => {
          const [from, to] = [column, column + 1].map((own) => Math.floor(own * visible.length / most));
          return visible.slice(from, to).reduce((a, b) => total[b] > total[a] ? b : a);
        });
        const lefts = columns.map((_, column) => column * scale.width / columns.length);
        let tops = columns.map(() => 0);
        layers.map(({ look, next }) => {
          tops = tops.map((below, column) => next(columns[column], below));
          return { class: `column ${look}`, d: outline(lefts, tops.map((top) => scale.y(top)), scale.width, scale.bottom) };
        }).toReversed().forEach((own) => draw(inner, 'path', own));
        draw(inner, 'path', { class: 'tile-total', d: outline(lefts, columns.map((tile) => scale.y(total[tile])), scale.width, scale.bottom) });
      },
      table: (inner) => {
        const list = (/** @type {string} */ name) => `/memory/tiles/${name}/{}`;
        const columns = columnsOf([['Tile', 'count'], ['Bytes in use', 'bytes', list('total')], ['With fragmentation', 'bytes', list('with_gaps')], ['Always live', 'bytes', list('always_live')], ['Not always live', 'bytes', list('not_always_live')]]);
        const rows = [...all].sort((a, b) => total[b] - total[a] || a - b).map((tile) => ({ at: String(tile), cells: [tile, total[tile], withGaps?.[tile] ?? null, tiles.always_live[tile] ?? null, tiles.not_always_live[tile] ?? null] }));
        addTable(inner, 'Tiles, the fullest first', columns, rows, { most: 20, choose: (row) => choose({ tile: row.cells[0] }) });
      },
    });
    add(plot.figure, 'figcaption', 'Each column is a tile. Its colours stack the bytes of each category at addresses that only one variable uses. Hatched above them are addresses that several variables share at different steps, up to the bytes that the tile has in use. '
      + 'Click a tile, or press the arrow keys, Page Up, Page Down, Home or End.');
  };

  const detail = addAs(part, 'div', 'tile-detail');
  follow(['tile'], () => {
    const tile = own();
    if (document.activeElement !== field) field.value = String(tile);
    if (!places.has(tile)) {
      ipu.value = String(ipus.indexOf(ipuOf(tile)));
      arrange();
    }
    detail.replaceChildren();
    const name = nameOf(tile);
    addAs(detail, 'h3', 'tile-map-name', name[0].toUpperCase() + name.slice(1));
    const { limit, at: limitAt } = ipuOf(tile);
    /** The value of a tile in a list of the report. @param {'total' | 'with_gaps' | 'always_live' | 'not_always_live'} list @returns {?Pieces} */
    const valueIn = (list) => tiles[list]?.[tile] === undefined ? null : [[tiles[list][tile], `/memory/tiles/${list}/${tile}`]];
    addFacts(detail, [
      ['Bytes in use', valueIn('total')], ['With fragmentation', valueIn('with_gaps')], ['Always live', valueIn('always_live')],
      ['Maximum of others at one step', valueIn('not_always_live')], ['Limit', [[limit, limitAt]]],
      ['Free of the limit', grouped(limit - total[tile]), limit < total[tile] ? 'bad' : ''],
    ]);
    const pair = add(detail, 'div', '', 'pair');
    const [left, right] = [add(pair, 'div'), add(pair, 'div')];
    const columns = columnsOf([['Category', 'text'], ['Bytes', 'bytes', `/bytes/${tile}`], ['Not overlapped', 'bytes'], ['Overlapped', 'bytes']]);
    const rows = categories.map((one, place) => ({ at: `/memory/tile_map/categories/${place}`, cells: [one.name, one.bytes[tile] ?? 0, alone(one, tile), one.overlapped?.[tile] ?? 0] }));
    if (map) addTable(left, 'Categories of the tile', columns, rows.filter((row) => Number(row.cells[1]) > 0).sort((a, b) => Number(b.cells[1]) - Number(a.cells[1])), { most: 30, look: lookOfCategory });
    addTileVariables(right, tile);
  });
};

/** @param {HTMLElement} parent @param {number} tile */
const addTileVariables = (parent, tile) => {
  const own = report.memory.tile_map?.variables;
  const place = own?.tiles.indexOf(tile) ?? -1;
  if (!own || place < 0) {
    const { saved_model: isSaved } = report.provenance.files;
    return void add(parent, 'p', own ? `The report lists the variables of the ${counted(own.tiles.length, 'fullest tile')}. This tile is not one of them.`
      : isSaved ? 'A saved model has no names of variables: make the report from profile.pop to see the largest variables of a tile.'
      : report.fit ? 'With --fit, popliner does not read single variables, so it cannot name the largest ones of a tile.'
      : 'The report does not have the largest variables of a tile.', 'soft');
  }
  const columns = columnsOf([['Largest variables', 'name'], ['Bytes', 'bytes', '/1'], ['Category', 'text'], ['Live', 'text']]);
  const rows = own.largest[place].map((/** @type {[number, number]} */ [kind, bytes], /** @type {number} */ number) => {
    const { name, category, always_live: always } = own.kinds[kind];
    return { at: `/memory/tile_map/variables/largest/${place}/${number}`, cells: [name, bytes, category, always ? 'always' : 'at some steps'] };
  });
  addTable(parent, `The ${own.most} largest variables of the tile`, columns, rows, {
    choose: (row) => choose({ variable: row.cells[0] }), look: lookOfCategory,
  });
};
