/*---
description: One row an airport
layer: staging
checks:
  - row_count: {min: 1458, max: 1458}
  - not_null: [airport, airport_name]
  - unique: airport
---*/
SELECT
    faa AS airport,
    name AS airport_name,
    lat AS latitude,
    lon AS longitude,
    tzone AS time_zone
FROM airports
