/*---
description: What each carrier flew with which aircraft; known tells whether the tail number is registered
layer: mart
checks:
  - not_null: [carrier, known, flights]
  - unique: [carrier, tailnum]
---*/
SELECT
    f.carrier,
    f.tailnum,
    p.tailnum IS NOT NULL AS known,
    p.manufacturer,
    p.model,
    p.built,
    p.seats,
    count(*) AS flights,
    sum(f.distance)::BIGINT AS distance
FROM stg_flights AS f
LEFT JOIN stg_planes AS p ON p.tailnum = f.tailnum
GROUP BY f.carrier, f.tailnum, p.tailnum, p.manufacturer, p.model, p.built, p.seats
