//! `fathom target` when hosts misbehave, are killed or lose the network: the target logs it, keeps
//! serving the others, and gets every buffer back.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Stdio};

use crate::common::{Folder, Run};
use crate::serving::{self, Background, Serving, spawn};
use serde_json::Value;

/// Asks for the state until it is as wanted; the program's start paces it.
#[track_caller]
fn wait_until(target: &Serving, folder: &Folder, what: &str, is: impl Fn(&Value) -> bool) -> Value {
    for _ in 0..TRIES {
        let stats = target.stats(folder);
        if is(&stats) {
            return stats;
        }
    }
    panic!("not {what}: {:#}", target.stats(folder));
}

fn is_idle(stats: &Value) -> bool {
    let connections = stats["connections"].as_array().unwrap();
    connections.is_empty() && stats["buffers"]["in_use"] == 0 && stats["buffers"]["pending"] == 0
}

const ENDLESS: &str = "--rw=randrw --bs=128k --iodepth=32 --size=64m --time_based --runtime=600";

#[test]
fn buffers_come_back_from_a_host_that_is_killed() {
    let folder = Folder::new();
    let target = Serving::start(&folder, "--memory 64M --threads 2 --buffers 8");
    let mut job = spawn(target.job(&folder, serving::NQN, 1, ENDLESS));
    let moved = |stats: &Value| stats["commands"]["reads"].as_u64() > Some(100);
    wait_until(&target, &folder, "loaded", moved);
    job.kill();
    wait_until(&target, &folder, "idle", is_idle);
    target
        .load(&folder, 1, "--rw=write --bs=128k --verify=crc32c")
        .expect(0);
    let run = target.stop("INT").expect(0);
    assert!(run.err.contains("0 buffers still in use"), "{run:#?}");
}

#[test]
fn a_target_that_is_killed_leaves_nothing_in_the_way_of_the_next() {
    let folder = Folder::new();
    let device = "--file disk.img --size 64M --threads 1";
    let mut target = Serving::start(&folder, device);
    let mut job = spawn(target.job(
        &folder,
        serving::NQN,
        1,
        &format!("{ENDLESS} --reconnect=0"),
    ));
    let moved = |stats: &Value| stats["commands"]["reads"].as_u64() > Some(100);
    wait_until(&target, &folder, "loaded", moved);
    target.kill();
    // The job ends with an error, and says so.
    assert!(job.wait_for_end().is_some_and(|code| code != 0));
    // The file's lock and the socket are free again.
    let again = Serving::start(&folder, device);
    again
        .load(&folder, 1, "--rw=write --bs=128k --verify=crc32c")
        .expect(0);
    again.stop("INT").expect(0);
}

#[test]
fn ten_thousand_connections_of_one_address_do_not_disturb_the_others() {
    let folder = Folder::new();
    // The other address, where this machine has one.
    let other = TcpListener::bind("[::1]:0").is_ok();
    let listen = if other { ", '[::1]:0'" } else { "" };
    let limited = format!(
        "listen = ['127.0.0.1:0'{listen}]\n[limits]\nconnections_per_address = 24\n\
         [[device]]\nname = 'd'\nkind = 'null'\nsize = '1G'\n[[subsystem]]\n\
         nqn = 'nqn.2026-01.io.fathom:target'\n[[subsystem.namespace]]\ndevice = 'd'\n"
    );
    folder.write("limited.toml", &limited);
    let target = Serving::start_as_is(&folder, "limited.toml --threads 2");
    let ops = "--rw=randread --bs=4k --time_based --runtime=600";
    let job = spawn(target.job(&folder, serving::NQN, 1, ops));
    let reads = |stats: &Value| stats["commands"]["reads"].as_u64().unwrap();
    wait_until(&target, &folder, "loaded", |stats| reads(stats) > 0);

    let address = format!("127.0.0.1:{}", target.port());
    let crowds: Vec<_> = (0..FLOOD / CROWD).map(|_| start_crowd(&address)).collect();
    let mut crowds: Vec<_> = crowds.into_iter().map(wait_for_crowd).collect();
    let stats = target.stats(&folder);
    let events = |name: &str| stats["events"][name].as_u64().unwrap();
    assert!(events("accepted") + events("turned_away") >= u64::from(FLOOD));
    // A few at a time expire, and are followed by others.
    assert!(
        events("turned_away") > u64::from(FLOOD) * 9 / 10,
        "{stats:#}"
    );
    assert!(stats["connections"].as_array().unwrap().len() <= 24);
    // Hosts that were there go on, and another address has room.
    let before = reads(&stats);
    wait_until(&target, &folder, "serving", |stats| {
        reads(stats) > before + 100
    });
    if other {
        let run = Run::of(target.job_at(&folder, "::1", serving::NQN, 1, FEW));
        run.expect(0);
    }
    crowds.iter_mut().for_each(Background::kill);
    job.signal("INT");
    let run = job.finish();
    assert!(run.out.contains("err= 0"), "{run:#?}");
    target.log_line("turned away");
    wait_until(&target, &folder, "idle", is_idle);
    target.load(&folder, 1, FEW).expect(0);
    target.stop("INT").expect(0);
}

const FEW: &str = "--rw=read --bs=4k --number_ios=10";

/// Starts this program again, as a part of the flood: a process may have 1024 files open.
fn start_crowd(address: &str) -> Background {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "target_faults::part_of_the_flood", "--nocapture"]);
    command.env(CROWD_ADDRESS, address).stdin(Stdio::piped());
    spawn(command)
}

/// Waits until all connections of a crowd have been judged.
fn wait_for_crowd(mut crowd: Background) -> Background {
    loop {
        match crowd.next_line().as_str() {
            "" => panic!("{:#?}", crowd.finish()),
            line if line.contains(CROWD_IS_THERE) => return crowd,
            _ => {}
        }
    }
}

/// Connections of a process that [`start_crowd`] has started; nothing in any other.
#[test]
fn part_of_the_flood() {
    let Ok(address) = std::env::var(CROWD_ADDRESS) else {
        return;
    };
    let connect = |_| TcpStream::connect(&address).unwrap();
    let crowd: Vec<TcpStream> = (0..CROWD).map(connect).collect();
    // The target closes or resets the last one; those before it were judged before.
    let _end = crowd.last().unwrap().read(&mut [0]);
    println!("{CROWD_IS_THERE}");
    // Until the test ends the process.
    let _never = std::io::stdin().read(&mut [0]);
}

#[test]
fn broken_and_foreign_hosts_are_logged_with_their_reason() {
    let folder = Folder::new();
    let target = Serving::start(&folder, "--null 1G --threads 1");
    let address = format!("127.0.0.1:{}", target.port());
    // PDUs of an unknown type, of an absurd length, and a request for a web page.
    for wrong in [
        [0x42, 0, 8, 0, 8, 0, 0, 0],
        [0x00, 0, 128, 0, 0xff, 0xff, 0xff, 0xff],
        *b"GET / HT",
    ] {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.write_all(&wrong).unwrap();
        // Not to the end: the target waits for the host to close.
        let mut answer = [0; 24];
        stream.read_exact(&mut answer).unwrap();
        // C2HTermReq, type 3.
        assert_eq!(answer[0], 3, "{answer:?}");
    }
    let stats = wait_until(&target, &folder, "idle", is_idle);
    assert_eq!(stats["events"]["terminated"], 3, "{stats:#}");
    let line = target.log_line("terminated peer=127.0.0.1:");
    assert!(
        line.contains("reason=\"terminated by the target: invalid header field"),
        "{line}"
    );
    let foreign = "nqn.2026-01.org.example:other";
    let run = target.load_of(&folder, foreign, 1, "--rw=read --bs=4k --number_ios=1");
    assert_ne!(run.code, Some(0), "{run:#?}");
    let line = target.log_line("refused peer=127.0.0.1:");
    let reason = "reason=\"Connect Invalid Parameters\" status_type=1 status_code=130";
    assert!(line.contains(reason) && line.ends_with(foreign), "{line}");
    target.stop("INT").expect(0);
}

const FLOOD: u32 = 10_000;
/// Connections of each process.
const CROWD: u32 = 500;
/// Variable with the address that a crowd connects to.
const CROWD_ADDRESS: &str = "FATHOM_TEST_CROWD_ADDRESS";
const CROWD_IS_THERE: &str = "the crowd is there";
/// Some tens of seconds.
const TRIES: u32 = 2000;

#[test]
fn a_network_that_is_cut_ends_the_connections_and_no_op_is_lost() {
    let network = match Network::create() {
        Ok(network) => network,
        Err(why) => {
            println!("skipped: no network namespace: {why}");
            return;
        }
    };
    let folder = Folder::new();
    let words = format!(
        "--memory 64M --threads 1 --allow-any-host --listen {}:0",
        network.outside
    );
    let target = Serving::start_as_is(&folder, &words);
    let ops = "--rw=randwrite --bs=4k --iodepth=4 --size=8m --rate_iops=400 --number_ios=2000";
    let recovery = "--verify=crc32c --keep_alive=2 --reconnect=120 --output-format=json";
    let words = format!("{ops} {recovery}");
    let job = target.job_at(&folder, &network.outside, serving::NQN, 1, &words);
    let job = spawn(network.inside(&job));
    let moved = |stats: &Value| stats["commands"]["writes"].as_u64() > Some(100);
    wait_until(&target, &folder, "loaded", moved);
    network.link("down");
    let uptime = |stats: &Value| stats["uptime_ns"].as_u64().unwrap();
    let since = uptime(&target.stats(&folder));
    let cut = |stats: &Value| stats["events"]["expired"].as_u64() > Some(0) && is_idle(stats);
    let stats = wait_until(&target, &folder, "rid of the host", cut);
    let writes = &stats["commands"]["writes"];
    let stats = wait_until(&target, &folder, "cut off for 5 s", |stats| {
        uptime(stats) > since + 5_000_000_000
    });
    assert_eq!(
        &stats["commands"]["writes"], writes,
        "nothing arrives meanwhile"
    );
    network.link("up");
    let run = job.finish().expect(0);
    let job = &run.json()["jobs"][0];
    assert_eq!(
        (&job["error"], &job["write"]["total_ios"]),
        (&0.into(), &2000.into())
    );
    target.log_line("reason=\"keep-alive expired\"");
    let stats = wait_until(&target, &folder, "idle", is_idle);
    assert!(
        stats["events"]["connected"].as_u64() >= Some(4),
        "{stats:#}"
    );
    target.stop("INT").expect(0);
}

/// A network namespace with a link to it, removed when the test ends.
struct Network {
    name: String,
    link: String,
    outside: String,
}

impl Network {
    /// Creates one, which takes root.
    fn create() -> Result<Self, String> {
        let number = std::process::id();
        let net = format!("198.18.{}", number % 250);
        let network = Self {
            name: format!("fathom-{number}"),
            link: format!("fathom{}", number % 100_000),
            outside: format!("{net}.1"),
        };
        let Self { name, link, .. } = &network;
        for step in [
            format!("netns add {name}"),
            format!("link add {link} type veth peer name inner netns {name}"),
            format!("addr add {net}.1/24 dev {link}"),
            format!("link set {link} up"),
            format!("-n {name} addr add {net}.2/24 dev inner"),
            format!("-n {name} link set inner up"),
        ] {
            ip(&step).map_err(|why| format!("ip {step}: {why}"))?;
        }
        Ok(network)
    }

    fn link(&self, state: &str) {
        ip(&format!("link set {} {state}", self.link)).unwrap();
    }

    /// Returns the command, to be run inside.
    fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.name]);
        inside.arg(command.get_program()).args(command.get_args());
        if let Some(folder) = command.get_current_dir() {
            inside.current_dir(folder);
        }
        inside
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // The link goes with its inner end, which goes with the namespace, once nobody is inside.
        let _gone = ip(&format!("link del {}", self.link));
        let _gone = ip(&format!("netns del {}", self.name));
    }
}

fn ip(words: &str) -> Result<(), String> {
    let output = Command::new("ip").args(words.split(' ')).output();
    let output = output.map_err(|error| error.to_string())?;
    match output.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&output.stderr).trim().to_owned()),
    }
}
