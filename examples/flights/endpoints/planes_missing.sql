/*---
description: Flights whose tail number is missing or not registered, by carrier, the most first
limit: 100
---*/
SELECT
    carrier,
    sum(flights)::BIGINT AS flights,
    coalesce(sum(flights) FILTER (WHERE NOT known), 0)::BIGINT AS flights_without_plane,
    coalesce(sum(flights) FILTER (WHERE tailnum IS NULL), 0)::BIGINT AS flights_without_tailnum
FROM fleet
GROUP BY carrier
ORDER BY flights_without_plane DESC, carrier
