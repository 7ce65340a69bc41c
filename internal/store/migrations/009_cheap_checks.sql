-- Constraints that cost less for the values that most rows have. To check a value against a list
-- of more than two, SQLite fills a table with the list for each row that is added, and to check
-- JSON it parses the text. What the constraints permit stays the same.
--
-- They are written into the text of the schema, as in 004_measures.sql.

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(replace(replace(replace(replace(sql,
	'CHECK (level IN ('''', ''full_success'', ''partial_success'', ''failure''))',
	'CHECK (level = '''' OR level = ''full_success'' OR level = ''partial_success'' OR level = ''failure'')'),
	'CHECK (fault IN ('''', ''rate_limited'',', 'CHECK (fault = '''' OR fault IN (''rate_limited'','),
	'CHECK (json_valid(required_tools))', 'CHECK (required_tools = ''[]'' OR json_valid(required_tools))'),
	'CHECK (json_valid(executed_tools))', 'CHECK (executed_tools = ''[]'' OR json_valid(executed_tools))'),
	'CHECK (json_valid(retried))', 'CHECK (retried = ''{}'' OR json_valid(retried))')
WHERE type = 'table' AND name = 'attempts';
UPDATE sqlite_schema SET sql = replace(sql,
	'CHECK (json_valid(sampling))', 'CHECK (sampling = ''{}'' OR json_valid(sampling))')
WHERE type = 'table' AND name = 'trials';
PRAGMA writable_schema = RESET;

SELECT * FROM results LIMIT 0;
