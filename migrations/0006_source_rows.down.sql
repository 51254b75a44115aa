DROP TABLE source_rows;
