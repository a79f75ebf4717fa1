/** What model calls cost, as far as their prices are known. */

import { formatCost, t } from "../text.js";

/** Return the dollars of a summary or of the stats of a turn, or null if the price of no call is known. */
export function readSpent({ estimated_cost_usd: sum, cost_usd: cost = sum, unpriced_calls: unpriced, model_calls: calls }) {
  return unpriced && unpriced >= calls && !cost ? null : cost;
}

/** Return the money in words. It is a lower bound if the price of some calls is unknown. */
export function formatSpent(stats) {
  const cost = readSpent(stats);
  return cost !== null && stats.unpriced_calls ? t("costs.at_least", { cost: formatCost(cost) }) : formatCost(cost);
}
