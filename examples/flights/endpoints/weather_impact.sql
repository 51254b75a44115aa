/*---
description: Departure delays and cancellations by what the weather was in the scheduled hour
limit: 10
params:
  origin: {type: string, description: All origins when left out, enum: [EWR, JFK, LGA]}
---*/
SELECT
    CASE
        WHEN NOT reported THEN 'no report'
        WHEN visibility < 1 THEN 'fog'
        WHEN precipitation > 0.1 THEN 'heavy rain'
        WHEN precipitation > 0 THEN 'rain'
        WHEN wind_speed >= 25 THEN 'wind'
        ELSE 'fair'
    END AS weather,
    sum(flights)::BIGINT AS flights,
    sum(cancelled)::BIGINT AS cancelled,
    round(sum(dep_delay_total)::BIGINT / nullif(sum(departures)::BIGINT, 0), 3) AS mean_dep_delay
FROM weather_delays
WHERE $origin IS NULL OR origin = $origin
GROUP BY weather
ORDER BY mean_dep_delay DESC NULLS LAST, weather
