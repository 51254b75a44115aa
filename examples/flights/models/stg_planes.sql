/*---
description: One row a registered aircraft
layer: staging
checks:
  - row_count: {min: 3322, max: 3322}
  - not_null: [tailnum, manufacturer]
  - unique: tailnum
---*/
SELECT tailnum, year AS built, manufacturer, model, engines, seats, engine
FROM planes
