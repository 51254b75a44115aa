/*---
description: One row an airport and hour; a wind of over 300 miles an hour is a fault of the instrument and left out
layer: staging
checks:
  - row_count: {min: 26115, max: 26115}
  - not_null: [origin, time_hour]
  - unique: [origin, time_hour]
---*/
SELECT
    origin,
    time_hour,
    temp AS temperature,
    CASE WHEN wind_speed <= 300 THEN wind_speed END AS wind_speed,
    precip AS precipitation,
    visib AS visibility
FROM raw_weather
