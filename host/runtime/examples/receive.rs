//! The least that taking in what a server sends can cost: `receive PORT FILE` connects to
//! this machine, takes the SHA-256 of what comes until the end, and appends it to FILE,
//! which is made. One thread; nothing is cut, compared or compressed.

#![allow(clippy::print_stdout)]

use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;

/// Bytes taken at once: what stays in a core's own cache.
const CHUNK: usize = 256 << 10;

fn main() {
    let mut args = std::env::args().skip(1);
    let (Some(port), Some(path)) = (args.next().and_then(|port| port.parse::<u16>().ok()), args.next())
    else {
        panic!("receive PORT FILE");
    };
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("a server");
    let mut file = File::create_new(path).expect("a new file");
    let (mut hash, mut chunk, mut total) = (Sha256::new(), vec![0; CHUNK], 0);
    loop {
        match stream.read(&mut chunk).expect("what is sent") {
            0 => break,
            len => {
                hash.update(&chunk[..len]);
                file.write_all(&chunk[..len]).expect("room");
                total += len as u64;
            }
        }
    }
    println!("{total} bytes, {:02x?}", &hash.finalize()[..4]);
}
