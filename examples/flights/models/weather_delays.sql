/*---
description: Flights and delays of each origin and hour beside the weather of that hour; hours without a report keep their flights
layer: mart
checks:
  - not_null: [origin, time_hour, flights]
  - unique: [origin, time_hour]
---*/
WITH hours AS (
    SELECT
        origin,
        time_hour,
        count(*) AS flights,
        count(*) FILTER (WHERE cancelled) AS cancelled,
        count(dep_delay) AS departures,
        coalesce(sum(dep_delay), 0)::BIGINT AS dep_delay_total
    FROM stg_flights
    GROUP BY origin, time_hour
)
SELECT
    h.origin,
    h.time_hour,
    h.flights,
    h.cancelled,
    h.departures,
    h.dep_delay_total,
    w.origin IS NOT NULL AS reported,
    w.temperature,
    w.wind_speed,
    w.precipitation,
    w.visibility
FROM hours AS h
LEFT JOIN stg_weather AS w ON w.origin = h.origin AND w.time_hour = h.time_hour
