-- One expression a line, each compared with PostgreSQL: type, text, or error.

-- Which overload: types of literals and of mixed arguments.
1
2147483648
9223372036854775808
1.5
1e3
'a'
NULL
1 + 1
1 + 1.5
1 + '1'
'1' + 1
1::int2 + 1::int2
1::int2 + 1::int8
1::int4 + 1::float4
1::int8 * 1::float4
1.5 + 1::float4
1.5::numeric + 1::float8
1::float4 + 1::float8
1 + true
-- (once times have operators) 'a' + 'b'
1 + 'a'
1 + NULL
-- (once times have operators) NULL + NULL
'a' || 'b'
'a' || 1
1 || 'a'
1.50 || 'a'
'a' || NULL
'a' || true
true || 'a'
1 || 2
'a'::varchar || 'b'
abs('1')
abs(-1)
abs(-1.5)
abs('a'::text)
abs(1, 2)
nosuch(1, 'a')
round(42)
round(42.5)
round(-2.5::float8)
round(2.567, 2)
round(2.567::float8, 2)
mod(7, 3)
mod(7, 3.5)
mod(7.5::float8, 2)
7 % -3
-7 % 3
7 / 2
-7 / 2
7 / 2.0
2 ^ 10
2 ^ 0.5
2.0 ^ 3
2.0 ^ -3
(-8) ^ (1.0/3)
0 ^ -1
power(2, 3)
power(2.0, 3)
pow(9, 0.5)
|/ 25
||/ 27
@ -5
~ 5
5 & 3
5 | 3
5 # 3
1 << 4
-16 >> 2
1::int8 << 40
1::int2 << 3
-((-2147483648)::int4)
-- (once times have operators) -'1'
- true
+ 5
sqrt(2)
sqrt(2.0)
sqrt(-1)
sqrt(-1.0)
cbrt(27)
exp(1)
exp(1.0)
exp(1000)
ln(2)
ln(2.0)
ln(0)
ln(-1.0)
log(100)
log(100.0)
log(2.0, 64.0)
log10(1000)
sign(-3)
sign(-3.5)
sign(0.0)
sign(NULL::numeric)
div(7, 2)
div(-7.5, 2)
gcd(12, 18)
gcd(12.5, 7.5)
lcm(4, 6)
width_bucket(5.35, 0.024, 10.06, 5)
width_bucket(5.35::float8, 0.024, 10.06, 5)
width_bucket(11, 0, 10, 5)
width_bucket(-1, 0, 10, 5)
width_bucket(5, 10, 0, 5)
width_bucket(5, 0, 0, 5)
width_bucket(5, 0, 10, 0)
width_bucket('NaN'::float8, 0, 10, 3)
width_bucket(3, 0, 'Infinity'::float8, 3)
ceil(1.2)
ceiling(-1.2::float8)
floor(-1.2)
trunc(-1.7)
trunc(1.789, 2)
trunc(1234.5, -2)
round(1250, -2)
round(15, -1)
scale(1.500)
min_scale(1.500)
trim_scale(1.500)
pi()
degrees(pi())
radians(180)
sin(0)
atan2(1, 1)
-- Division and overflow.
1 / 0
1.0 / 0
1::float8 / 0
1 % 0
1.0 % 0
0::float8 / 0
'NaN'::float8 / 0
2147483647 + 1
2147483647::int8 + 1
(-2147483648) / (-1)
(-9223372036854775808) / (-1)
(-32768)::int2 / (-1)::int2
(-2147483648) % (-1)
9223372036854775807 * 2
-9223372036854775808 * -1
46341 * 46341
1e308::float8 * 10
1e-308::float8 / 1e10
1e38::float4 * 10::float4
abs(-2147483648)
32767::int2 + 1::int2
40000::int2
3000000000::int4
1e10::int4
2.5::int4
3.5::int4
-2.5::int4
2.5::float8::int4
3.5::float8::int4
-2.5::float8::int4
'NaN'::float8::int4
'NaN'::numeric::int4
1e20::float8::int8
9223372036854775807::float8::int8
1e40::float8::float4
1e-50::float8::float4
-- Three-valued logic.
true AND NULL
false AND NULL
NULL AND NULL
true OR NULL
false OR NULL
NOT NULL
NOT true
true AND 1
1 OR true
'x' AND true
'yes' AND true
NULL IS NULL
1 IS NULL
NULL::int IS NOT NULL
NULL::bool IS TRUE
true IS TRUE
false IS NOT TRUE
NULL::bool IS FALSE
NULL::bool IS UNKNOWN
true IS NOT UNKNOWN
1 IS TRUE
1 IS DISTINCT FROM NULL
NULL IS DISTINCT FROM NULL
1 IS NOT DISTINCT FROM 1
1 IS DISTINCT FROM 1.0
-- CASE and its relatives.
CASE WHEN true THEN 1 ELSE 2.5 END
CASE WHEN false THEN 1 END
CASE 3 WHEN 1 THEN 'a' WHEN 3 THEN 'b' ELSE 'c' END
CASE WHEN 1 THEN 2 END
CASE WHEN true THEN 1 ELSE 'a' END
CASE WHEN true THEN 1 ELSE 'a'::text END
CASE WHEN true THEN '1' ELSE 2 END
CASE WHEN NULL THEN 1 ELSE 2 END
CASE WHEN true THEN '2020-01-01'::date ELSE '2020-01-01'::timestamp END
coalesce(NULL, NULL)
coalesce(NULL, 1, 2.5)
coalesce(NULL::int, 'a')
coalesce(1, 'x'::text)
coalesce('a', 'b')
nullif(1, 1)
nullif(1, 2)
nullif(1, 1.0)
nullif('a', 'b')
nullif('a', 1)
nullif(NULL, 1)
greatest(1, 2, 3)
greatest(1, 2.5, NULL)
greatest(NULL, NULL)
least('b', 'a', 'c')
least(1, 'x')
greatest(1::float4, 2::float8)
greatest('NaN'::float8, 1)
least('2020-01-01'::date, '2019-01-01'::timestamp)
-- IN and BETWEEN.
1 IN (1, 2, 3)
4 IN (1, 2, 3)
4 IN (1, NULL)
1 IN (1, NULL)
NULL IN (1, 2)
1 NOT IN (2, 3)
1 NOT IN (2, NULL)
1 IN (1.0, 2)
1 IN ('1', '2')
'a' IN ('a', 'b')
'a' IN ('b')
1 IN ('a', 'b')
1.50 IN (1.5, 2)
'NaN'::float8 IN (1, 'NaN')
15 IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15)
16 IN (1,2,3,4,5,6,7,8,9,10,11,12,13,14,15)
2 BETWEEN 1 AND 3
2 NOT BETWEEN 1 AND 3
NULL BETWEEN 1 AND 3
2.5 BETWEEN 1 AND 3
'b' BETWEEN 'a' AND 'c'
-- Comparison of mixed types, untyped literals, and what does not compare.
1 = '1'
'1' = 1
1 = 'a'
1 = 1.0
1 = 'x'::text
'a' < 'b'
'a' < 'B'
true > false
true = 'yes'
true = 1
'2024-01-01'::date = '2024-01-01'
'2024-01-01'::date < '2024-01-01 00:00:01'::timestamp
'2024-01-01'::date = '2024-01-01 00:00+00'::timestamptz
'24:00'::time > '23:59'
'1 month'::interval = '30 days'
'1 day'::interval < '25 hours'
'{"a":1}'::jsonb = '{"a": 1.0}'
'[]'::jsonb < 'null'::jsonb
'\x01'::bytea < '\x0100'
'{1,2}'::int4[] = '{1,2}'
'{1,2}'::int4[] < '{1,3}'
'{a,b}'::text[] > '{a}'
1 = true
'a'::text = 1
-- Literals that are none.
'x'::int4
''::int4
' 12 '::int4
'12x'::int8
'1.5'::int4
'99999999999'::int4
'abc'::float8
'1e400'::float8
'1e-400'::float8
'abc'::numeric
'1_000'::int4
'maybe'::bool
'yes'::bool
'o'::bool
'on'::bool
'2024-13-01'::date
'2024-02-30'::date
'nonsense'::timestamp
'25:00'::time
'1 fortnight'::interval
'{'::jsonb
'{"a":}'::jsonb
'\xZZ'::bytea
-- Casts.
1::bool
0::bool
true::int4
true::int8
true::text
false::varchar(3)
1::text
1.50::text
'abc'::varchar(2)
'abc'::text::varchar(2)
'été'::varchar(2)
12345.678::numeric(6,2)
12345.678::numeric(8,2)
12345.678::numeric(3,-3)
999.95::numeric(4,1)
'1.005'::numeric(5,2)
1e500::numeric
'2024-01-01'::date::timestamp
'2024-01-01'::date::timestamptz
'2024-01-01 12:34:56'::timestamp::date
'2024-01-01 12:34:56'::timestamp::time
'infinity'::timestamp::date
'infinity'::timestamp::time
'12:34'::time::interval
'1 day 25 hours'::interval::time
'-1 hour'::interval::time
'2024-01-01 12:34:56.789'::timestamp(0)
'12:34:56.789'::time(1)
'1.23456789 seconds'::interval(3)
'1'::jsonb::int4
'1.5'::jsonb::int4
'true'::jsonb::bool
'"a"'::jsonb::int4
'null'::jsonb::int4
'[1]'::jsonb::int4
'{"b":1,"a":[1,2]}'::jsonb::text
'{1,2,3}'::int4[]::text[]
'{1,2,3}'::int4[]::text
'{a,b}'::text[]::int4[]
1::date
'a'::bytea
1::interval
true::float8
-- Text.
concat('a', 1, true, NULL, 2.50)
concat_ws(', ', 'a', NULL, 1, false)
concat_ws(NULL, 'a', 'b')
concat(NULL, NULL)
-- Arrays.
ARRAY[1, 2, 3]
ARRAY[1, 2.5, NULL]
ARRAY['a', 'b']
ARRAY['a', 'b c', 'd"e', NULL, '']
(ARRAY[1, 2, 3])[2]
(ARRAY[1, 2, 3])[4]
(ARRAY[1, 2, 3])[0]
('{a,b,c}'::text[])[3]
(NULL::text[])[1]
(ARRAY[1, 2, 3])[NULL]
array_length(ARRAY[1, 2, 3], 1)
array_length(ARRAY[1, 2, 3], 2)
cardinality(ARRAY[1, 2, 3])
-- Evaluated only where needed.
CASE WHEN 1 = 1 THEN 1 ELSE 2 END
coalesce(1, 2)
false AND true
coalesce('a'::varchar, 'b'::text)
coalesce('a'::text, 'b'::varchar)
CASE WHEN true THEN 'abc'::varchar(2) ELSE 'defg'::varchar(2) END
greatest('a'::varchar(1), 'bcd')
nullif('a'::varchar, 'b')
ARRAY['a'::varchar, 'b']
'{1,2}'::int4[] = ARRAY[1,2]
ARRAY[1.5, 2] < ARRAY[1.5, 3]
ARRAY[]::int4[]
float8(1)
int4(2.5)
text(1)
date('2024-01-01 10:00'::timestamp)
int8('12')
bool(1)

-- A date is no interval of years and months.
'0001-01-01'::interval
'2024-03-31 02:30'::interval
'-1-2-3'::interval
'1-2 3'::interval

-- Scales beyond 2,000.
length(round(2.5, 3000)::text)
length(trunc(2.5, 2147483647)::text)
round(1e3000 + 7, -2990) = 1e3000
trunc(12.5, -2147483648)
round('1e131071'::numeric, -131071) = '1e131071'::numeric
round(1.6e-2500, 2500) = 2e-2500

-- Times as keys of objects.
jsonb_build_object('2024-02-29 12:00+02'::timestamptz, 1, '2024-02-29 12:00:01.5'::timestamp, 2, '2024-02-29'::date, 3, 'infinity'::timestamptz, 4)

-- A base next to 1.
log(1.00000000000000000001, 12345678901234567890)
log(0.99999999999999999999, 3)
