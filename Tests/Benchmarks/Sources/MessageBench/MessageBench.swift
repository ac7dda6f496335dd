internal import ArgumentParser
internal import BenchMessages
internal import CBenchMessages
internal import Connect
internal import ConnectProtobufC
internal import Measuring
internal import NIOCore
internal import SwiftProtobuf

/// Compares the messages of libprotobuf-c with SwiftProtobuf's, both as a client's codecs decode and encode them.
@main
struct MessageBench: ParsableCommand {
  @Option(help: "How long to measure each row and family, in seconds.")
  var seconds = 0.3

  @Option(help: "How often; the median counts.")
  var repetitions = 7

  @Option(help: "Only the rows whose names begin with this.")
  var rows = ""

  @Option(
    help: "Instead of measuring for a time: how often to do it with libprotobuf-c. For callgrind and perf."
  )
  var calls: Int?

  private typealias CRecord = CMessage<Connect__Bench__V1__Record>
  private typealias CRecords = CMessage<Connect__Bench__V1__Records>

  private struct Row {
    var name: String
    /// The ratio that is promised.
    var expected: Double
    var swift: () throws -> Int
    var c: () throws -> Int
  }

  func run() throws {
    let medium = Records.record(7)
    let large = Records.large
    let mediumBytes = try ProtoCodec().encode(medium, as: .protobuf, deterministic: true)
    let largeBytes = try ProtoCodec().encode(large, as: .protobuf, deterministic: true)
    let rows =
      try self.rows("medium", medium, mediumBytes, Self.mediumReads)
      + self.rows("large", large, largeBytes, Self.largeReads)
    print("medium: \(mediumBytes.readableBytes) bytes, large: \(largeBytes.readableBytes) bytes")
    print("| | SwiftProtobuf | libprotobuf-c | ratio | promised | allocations |")
    print("| --- | --- | --- | --- | --- | --- |")
    for row in rows where row.name.hasPrefix(self.rows) {
      if let calls {
        for _ in 0..<calls { blackHole(try row.c()) }
      } else {
        try self.measure(row)
      }
    }
  }

  // MARK: Rows

  private struct Reads<Message, CStruct: CMessageStruct> {
    var two: (Message) -> Int
    var all: (Message) -> Int
    var cTwo: (CMessage<CStruct>) -> Int
    var cAll: (CMessage<CStruct>) -> Int
  }

  private static var mediumReads: Reads<Connect_Bench_V1_Record, Connect__Bench__V1__Record> {
    Reads(
      two: { $0.id.utf8.count &+ Int($0.createdMs) },
      all: { $0.sumOfAll },
      cTwo: { $0.id.utf8.count &+ Int($0.created_ms) },
      cAll: { $0.sumOfAll }
    )
  }

  private static var largeReads: Reads<Connect_Bench_V1_Records, Connect__Bench__V1__Records> {
    Reads(
      two: { $0.records[500].id.utf8.count &+ Int($0.records[500].createdMs) },
      all: { $0.records.reduce(0) { $0 &+ $1.sumOfAll } },
      cTwo: { message in
        message.withUnsafePointer { pointer in
          guard let record = pointer.pointee.records?[500]?.pointee else { return 0 }
          return String(cString: record.id).utf8.count &+ Int(record.created_ms)
        }
      },
      cAll: { $0.list(\.records, count: \.n_records).reduce(0) { $0 &+ $1.sumOfAll } }
    )
  }

  private func rows<Message, CStruct>(
    _ size: String,
    _ message: Message,
    _ bytes: ByteBuffer,
    _ reads: Reads<Message, CStruct>
  ) throws -> [Row] where Message: SwiftProtobuf.Message {
    let proto = ProtoCodec()
    let json = JSONCodec()
    let coding = MessageCoding<Message>.protobuf
    let cCoding = MessageCoding<CMessage<CStruct>>.protobufC()
    let cMessage = try proto.decode(bytes, as: cCoding)
    let text = try json.encode(message, as: coding, deterministic: false)
    return [
      Row(name: "\(size): decode, read two fields", expected: 5) {
        reads.two(try proto.decode(bytes, as: coding))
      } c: {
        reads.cTwo(try proto.decode(bytes, as: cCoding))
      },
      Row(name: "\(size): decode, read all fields", expected: 1.8) {
        reads.all(try proto.decode(bytes, as: coding))
      } c: {
        reads.cAll(try proto.decode(bytes, as: cCoding))
      },
      Row(name: "\(size): encode", expected: 2) {
        try proto.encode(message, as: coding, deterministic: false).readableBytes
      } c: {
        try proto.encode(cMessage, as: cCoding, deterministic: false).readableBytes
      },
      Row(name: "\(size): JSON encode", expected: 2) {
        try json.encode(message, as: coding, deterministic: false).readableBytes
      } c: {
        try json.encode(cMessage, as: cCoding, deterministic: false).readableBytes
      },
      Row(name: "\(size): JSON decode", expected: 2) {
        reads.two(try json.decode(text, as: coding))
      } c: {
        reads.cTwo(try json.decode(text, as: cCoding))
      },
    ]
  }

  // MARK: Measuring

  /// The families take turns, so that what slows the machine down slows both.
  private func measure(_ row: Row) throws {
    var swift: [Double] = []
    var c: [Double] = []
    for _ in 0..<self.repetitions {
      swift.append(try self.nanoseconds(row.swift))
      c.append(try self.nanoseconds(row.c))
    }
    let ratios = zip(swift, c).map { $0 / $1 }
    let cells = [
      row.name, Self.time(Self.median(swift)), Self.time(Self.median(c)), Self.rounded(Self.median(ratios)),
      "\(row.expected)", "\(try Self.allocations(row.swift)), \(try Self.allocations(row.c))",
    ]
    print("| \(cells.joined(separator: " | ")) |")
  }

  private func nanoseconds(_ body: () throws -> Int) throws -> Double {
    let window = UInt64(self.seconds * 1e9)
    var batch = 1
    while true {
      let start = Cost.now.cpu
      let clock = Clock.now
      for _ in 0..<batch { blackHole(try body()) }
      let elapsed = Clock.now - clock
      if elapsed >= window / 2 { return (Cost.now.cpu - start) * 1000 / Double(batch) }
      batch = elapsed * 8 < window ? batch * 8 : batch * 2
    }
  }

  private static func allocations(_ body: () throws -> Int) throws -> Int {
    blackHole(try body())
    let before = Cost.now.allocations
    for _ in 0..<10 { blackHole(try body()) }
    return Int(((Cost.now.allocations - before) / 10).rounded())
  }

  private static func median(_ values: [Double]) -> Double { values.sorted()[values.count / 2] }

  private static func time(_ nanoseconds: Double) -> String {
    nanoseconds < 1e6
      ? "\(self.rounded(nanoseconds / 1000)) µs" : "\(self.rounded(nanoseconds / 1e6)) ms"
  }

  private static func rounded(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }
}

/// Keeps the compiler from leaving out what made `value`.
@inline(never)
private func blackHole(_ value: Int) {
  withExtendedLifetime(value) {}
}
