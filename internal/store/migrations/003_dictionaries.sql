-- What transcripts share. A transcript's body can need one of these to be read
-- and then has its id in the zstd frame. body is zstd over the text, which is a
-- raw dictionary.
CREATE TABLE dictionaries (
	id   INTEGER PRIMARY KEY CHECK (id BETWEEN 1 AND 4294967295),
	body BLOB NOT NULL
) STRICT;
CREATE TRIGGER dictionaries_keep BEFORE UPDATE ON dictionaries
BEGIN SELECT raise(ABORT, 'dictionaries are never changed'); END;
CREATE TRIGGER dictionaries_stay BEFORE DELETE ON dictionaries
BEGIN SELECT raise(ABORT, 'dictionaries are never deleted'); END;
