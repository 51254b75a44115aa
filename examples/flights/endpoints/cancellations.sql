/*---
description: Cancelled flights of each month, with their share of all flights in percent
limit: 12
params:
  carrier: {type: string, description: A carrier code such as UA; all carriers when left out}
  origin: {type: string, description: All origins when left out, enum: [EWR, JFK, LGA]}
---*/
SELECT
    month(flight_date) AS month,
    sum(flights)::BIGINT AS flights,
    sum(cancelled)::BIGINT AS cancelled,
    round(100 * sum(cancelled)::BIGINT / sum(flights)::BIGINT, 2) AS cancelled_percent
FROM daily_delays
WHERE ($carrier IS NULL OR carrier = $carrier)
  AND ($origin IS NULL OR origin = $origin)
GROUP BY ALL
ORDER BY month
