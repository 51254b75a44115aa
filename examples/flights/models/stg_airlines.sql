/*---
description: One row a carrier
layer: staging
checks:
  - row_count: {min: 16, max: 16}
  - not_null: [carrier, carrier_name]
  - unique: carrier
---*/
SELECT carrier, name AS carrier_name FROM airlines
