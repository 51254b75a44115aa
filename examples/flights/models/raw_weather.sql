/*---
description: The hourly weather as it was delivered
layer: raw
checks:
  - row_count: {min: 26115, max: 26115}
  - not_null: [origin, time_hour]
---*/
SELECT * FROM weather
