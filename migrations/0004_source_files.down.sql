DROP TABLE source_files;
