-- stops is how many of the run's attempts ended because the node chose to stop.
ALTER TABLE runs ADD COLUMN stops INTEGER NOT NULL DEFAULT 0 CHECK (stops BETWEEN 0 AND attempts);
