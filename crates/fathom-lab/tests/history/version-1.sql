PRAGMA foreign_keys = OFF;
PRAGMA application_id = 1182034029;
PRAGMA user_version = 1;
BEGIN TRANSACTION;
CREATE TABLE cell(
    id INTEGER PRIMARY KEY,
    lab INTEGER NOT NULL REFERENCES lab ON DELETE CASCADE,
    number INTEGER NOT NULL,
    axes TEXT NOT NULL,
    UNIQUE (lab, number)
) STRICT;
INSERT INTO "cell" VALUES(1,1,0,'{"numjobs":1}');
CREATE TABLE lab(
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    file TEXT NOT NULL,
    file_sha256 TEXT NOT NULL REFERENCES plan(fingerprint),
    seed INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done', 'abandoned')),
    begun_ms INTEGER NOT NULL,
    ended_ms INTEGER
) STRICT;
INSERT INTO "lab" VALUES(1,'tags','lab.toml','e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',-1,'running',1795460000000,NULL);
CREATE TABLE machine(
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    json TEXT NOT NULL
) STRICT;
INSERT INTO "machine" VALUES(1,'34d0de34f583979747cfe40d15d7f8d609eb2b7c1fe63c982c9e100f2faac931','{"cpu":"a processor"}');
CREATE TABLE measure(
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    grp TEXT NOT NULL,
    direction TEXT NOT NULL,
    metric TEXT NOT NULL,
    value REAL NOT NULL,
    low REAL,
    high REAL,
    PRIMARY KEY (run, grp, direction, metric)
) STRICT, WITHOUT ROWID;
INSERT INTO "measure" VALUES(1,'','write','bw',54945382.5,NULL,NULL);
INSERT INTO "measure" VALUES(1,'','write','clat_p99',127000.5,126000.0,128000.0);
CREATE TABLE plan(
    id INTEGER PRIMARY KEY,
    fingerprint TEXT NOT NULL UNIQUE,
    text TEXT NOT NULL
) STRICT;
INSERT INTO "plan" VALUES(1,'e657b312b91aa12f7b5934da545486f063538f4dc59c130fa641475a9f025c05','[j]
rw=write
');
INSERT INTO "plan" VALUES(2,'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855','');
CREATE TABLE record(
    run INTEGER PRIMARY KEY REFERENCES run ON DELETE CASCADE,
    version INTEGER NOT NULL,
    zjson BLOB NOT NULL
) STRICT;
INSERT INTO "record" VALUES(1,1,X'78DAAB562A4B2D2ACECCCF53B232D451CACA4F2A56B28A8EAD05005F4707BE');
CREATE TABLE run(
    id INTEGER PRIMARY KEY,
    uuid TEXT NOT NULL UNIQUE,
    lab INTEGER REFERENCES lab ON DELETE CASCADE,
    cell INTEGER REFERENCES cell ON DELETE CASCADE,
    variant TEXT,
    repeat INTEGER,
    place INTEGER,
    role TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('planned', 'running', 'done', 'failed', 'cut')),
    seed INTEGER,
    begun_ms INTEGER,
    wall_ms INTEGER,
    plan INTEGER REFERENCES plan,
    machine INTEGER REFERENCES machine,
    subject TEXT,
    note TEXT
) STRICT;
INSERT INTO "run" VALUES(1,'6ae9af55395333c52f736a1f1dcb7a6a',NULL,NULL,NULL,NULL,NULL,'import','done',NULL,1795460562945,1005,1,1,'{"program":"fathom 0.1.0","kernel":"6.1"}',NULL);
INSERT INTO "run" VALUES(2,'00000000000000000000000000000002',1,1,'plain',0,1,'measure','cut',-2,1795460001000,NULL,1,NULL,NULL,NULL);
INSERT INTO "run" VALUES(3,'00000000000000000000000000000003',1,1,'fair',0,0,'measure','planned',7,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE tag(
    run INTEGER NOT NULL REFERENCES run ON DELETE CASCADE,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (run, key)
) STRICT, WITHOUT ROWID;
INSERT INTO "tag" VALUES(1,'commit','1a2b''3c');
CREATE TABLE verdict(
    lab INTEGER NOT NULL REFERENCES lab ON DELETE CASCADE,
    cell INTEGER NOT NULL REFERENCES cell ON DELETE CASCADE,
    variant TEXT NOT NULL,
    metric TEXT NOT NULL,
    estimate REAL,
    low REAL,
    high REAL,
    p REAL,
    p_holm REAL,
    repeats INTEGER NOT NULL,
    word TEXT NOT NULL,
    PRIMARY KEY (lab, cell, variant, metric)
) STRICT, WITHOUT ROWID;
INSERT INTO "verdict" VALUES(1,1,'fair','write.bw',1.01,0.99,1.03,0.25,0.5,12,'unclear');
CREATE INDEX run_comparable ON run(plan, machine, begun_ms);
CREATE INDEX run_of_lab ON run(lab, state);
CREATE INDEX run_of_cell ON run(cell);
CREATE INDEX tag_value ON tag(key, value);
CREATE INDEX verdict_of_cell ON verdict(cell);
COMMIT;
