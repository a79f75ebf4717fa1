/** The devices and sensors that the agent sees, by room, with a field that filters them. */

import { html, repeat } from "../vendor/lit.js";
import { formatMoment, t } from "../text.js";
import { SashElement } from "../element.js";
import { describeDomain } from "./service-words.js";

// The rooms of a larger house, and all rooms on a phone, are closed at first.
const MAX_OPEN_ENTITIES = 150;
const PHONE = "(max-width: 48rem)";
const MISSING = new Set(["unavailable", "unknown"]);

class EntityList extends SashElement {
  static properties = {
    home: { attribute: false },
    filter: { state: true },
  };

  constructor() {
    super();
    this.filter = "";
    this._isPhone = matchMedia(PHONE).matches;
  }

  render() {
    const { areas, entities } = this.home;
    const words = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const floors = new Map(areas.map((area) => [area.area_id, area.floor]));
    const found = entities.filter((entity) => words.every((word) => describeForSearch(entity, floors).includes(word)));
    const isOpen = words.length > 0 || (!this._isPhone && entities.length <= MAX_OPEN_ENTITIES);
    return html`
      <div class="filter">
        <label for="entity-filter">${t("house.filter")}</label>
        <input id="entity-filter" type="search" autocomplete="off" placeholder=${t("house.filter.example")} .value=${this.filter} @input=${(event) => (this.filter = event.target.value)}>
        <span class="dim small" role="status">
          ${found.length === entities.length ? t("house.count", { count: entities.length }) : t("house.found", { count: found.length, all: entities.length })}
        </span>
      </div>
      ${found.length ? null : html`<p class="empty">${entities.length ? t("house.none_found") : t("house.no_entities")}</p>`}
      <div class="areas">
        ${repeat(
          groupByArea(found, floors),
          (group) => group.id,
          (group) => this._renderArea(group, isOpen),
        )}
      </div>
    `;
  }

  _renderArea({ name, floor, entities }, isOpen) {
    return html`<details class="card area" ?open=${isOpen}>
      <summary>
        <h3>${name ?? t("house.no_area")}</h3>
        <span class="dim small">${floor ? `${floor} · ` : ""}${t("house.count", { count: entities.length })}</span>
      </summary>
      <ul>
        ${repeat(entities, (entity) => entity.entity_id, renderEntity)}
      </ul>
    </details>`;
  }
}

function renderEntity(entity) {
  return html`<li data-entity=${entity.entity_id}>
    <span>${entity.name}<span class="dim small">${entity.entity_id}</span></span>
    <span class=${MISSING.has(entity.state) ? "entity-state warn" : "entity-state"}>
      ${entity.shown}<span class="dim small">${entity.changed_at ? t("house.since", { time: formatMoment(entity.changed_at) }) : null}</span>
    </span>
  </li>`;
}

function describeForSearch({ name, entity_id: id, area, area_id: areaId, domain }, floors) {
  return [name, id, area, floors.get(areaId), describeDomain(domain)].join(" ").toLowerCase();
}

/** Return [{id, name, floor, entities}], by floor and name. Entities without a room come last. */
function groupByArea(entities, floors) {
  const groups = new Map();
  for (const entity of entities) {
    const id = entity.area_id ?? "";
    if (!groups.has(id)) groups.set(id, { id, name: entity.area, floor: floors.get(id), entities: [] });
    groups.get(id).entities.push(entity);
  }
  const key = ({ id, floor, name }) => `${id ? 0 : 1} ${floor ?? "~"} ${name}`;
  return [...groups.values()].sort((one, two) => key(one).localeCompare(key(two)));
}

customElements.define("sash-entity-list", EntityList);
