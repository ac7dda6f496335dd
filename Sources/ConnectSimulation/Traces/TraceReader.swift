internal import Connect
internal import Foundation

/// Reads a trace piece by piece, in bounded memory: of a gigabyte it keeps counts and distributions.
///
/// The first bytes tell the format:
///
/// | format | begins with |
/// | --- | --- |
/// | OTLP traces in JSON, one document or one a line | an object with `resourceSpans` |
/// | a cassette | an object with `cassette` or `exchanges` |
/// | the report of `connectrpc load --json` | an object with `addresses` |
/// | an access log, one JSON object a line | any other object |
///
/// What cannot be read is counted in ``TrafficTrace/mistakes``. If that is more than the half, ``finish()`` throws.
public struct TraceReader {
  private enum Format {
    case log(AccessLogFormat)
    case spans(SpanFormat)
    case cassette(CassetteFormat)
    case report(LoadReportFormat)
  }

  /// How many bytes may stand before the first key.
  private static let longestStart = 4_096

  /// How files begin that are known, but are no text in UTF-8.
  private static let otherStarts: [(start: [UInt8], problem: String)] = [
    ([0x1f, 0x8b], "is compressed: give what `gzip -d` makes of it"),
    ([0x28, 0xb5, 0x2f, 0xfd], "is compressed: give what `zstd -d` makes of it"),
    ([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0x00], "is compressed: give what `xz -d` makes of it"),
    (Array("BZh".utf8), "is compressed: give what `bzip2 -d` makes of it"),
    (Array("PK\u{3}\u{4}".utf8), "is compressed: give what `unzip -p` makes of it"),
    ([0xff, 0xfe], "is UTF-16: give what `iconv -f UTF-16 -t UTF-8` makes of it"),
    ([0xfe, 0xff], "is UTF-16: give what `iconv -f UTF-16 -t UTF-8` makes of it"),
    ([0x7b, 0x00], "is UTF-16: give what `iconv -f UTF-16LE -t UTF-8` makes of it"),
    ([0x00, 0x7b], "is UTF-16: give what `iconv -f UTF-16BE -t UTF-8` makes of it"),
  ]

  private let name: String
  private let unit: Double
  private var builder: TraceBuilder
  private var start: [UInt8] = []
  private var format: Format?

  /// A reader of a trace.
  ///
  /// - Parameters:
  ///   - name: The file's name, for errors.
  ///   - methods: The paths of the methods that there are; calls of others are mistakes. Nil, the default, for any method.
  ///   - unit: The unit of durations in access logs that have none: milliseconds by default.
  public init(
    named name: String = "trace",
    methods: Set<String>? = nil,
    unit: Duration = .milliseconds(1)
  ) {
    self.name = name
    self.unit = unit.seconds
    self.builder = TraceBuilder(name: name, methods: methods)
  }

  /// Reads the next bytes.
  ///
  /// - Throws: ``TraceError`` if they begin no trace of a format that is known.
  public mutating func read(_ bytes: some Collection<UInt8>) throws(TraceError) {
    if self.format == nil {
      self.start += bytes
      guard self.start.count >= Self.longestStart || Self.firstKey(self.start) != nil else { return }
      try self.begin()
    } else {
      self.pass(Array(bytes))
    }
  }

  /// - Returns: The trace.
  /// - Throws: ``TraceError`` if there are no calls in it, or if more than half of it cannot be read.
  public mutating func finish() throws(TraceError) -> TrafficTrace {
    if self.format == nil { try self.begin() }
    switch self.format.take() {
    case .log(var format): format.finish(&self.builder)
    case .spans(var format): format.finish(&self.builder)
    case .cassette(var format): format.finish(&self.builder)
    case .report(var format): format.finish(&self.builder)
    case nil: break
    }
    return try self.builder.finish()
  }

  private mutating func begin() throws(TraceError) {
    let key = Self.firstKey(self.start)
    switch key {
    case "resourceSpans"?, "resource_spans"?: self.format = .spans(SpanFormat())
    case "cassette"?, "exchanges"?: self.format = .cassette(CassetteFormat())
    case "addresses"?: self.format = .report(LoadReportFormat())
    default:
      guard let first = self.start.first(where: { !Self.isSpace($0) }) else {
        throw TraceError(name: self.name, problem: "is empty: \(TraceBuilder.expectation)")
      }
      for (start, problem) in Self.otherStarts where self.start.starts(with: start) {
        throw TraceError(name: self.name, problem: problem)
      }
      guard first != UInt8(ascii: "[") else {
        throw TraceError(
          name: self.name,
          problem: "is one list: give one object a line, as `jq -c '.[]'` makes it"
        )
      }
      self.format = .log(AccessLogFormat(unit: self.unit))
    }
    let start = self.start
    self.start = []
    self.pass(start)
  }

  private mutating func pass(_ bytes: [UInt8]) {
    // The format's state is taken out while it changes, so that it is not copied.
    switch self.format.take() {
    case .log(var log):
      log.read(bytes, &self.builder)
      self.format = .log(log)
    case .spans(var spans):
      spans.read(bytes, &self.builder)
      self.format = .spans(spans)
    case .cassette(var cassette):
      cassette.read(bytes, &self.builder)
      self.format = .cassette(cassette)
    case .report(var report):
      report.read(bytes, &self.builder)
      self.format = .report(report)
    case nil: break
    }
  }

  private static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || (0x09...0x0d).contains(byte) || [0xef, 0xbb, 0xbf].contains(byte)
  }

  /// The first key of the object that a text begins with; nil if there is none yet.
  private static func firstKey(_ bytes: [UInt8]) -> String? {
    var rest = bytes[...].drop(while: self.isSpace)
    guard rest.popFirst() == UInt8(ascii: "{") else { return nil }
    rest = rest.drop(while: self.isSpace)
    guard rest.popFirst() == UInt8(ascii: "\""), let end = rest.firstIndex(of: UInt8(ascii: "\"")) else {
      return nil
    }
    return String(decoding: rest[..<end], as: UTF8.self)
  }
}

extension TrafficTrace {
  /// Reads a file in pieces; `-` is standard input.
  ///
  /// - Parameters:
  ///   - path: The file.
  ///   - methods: As for ``TraceReader``.
  ///   - unit: As for ``TraceReader``.
  /// - Throws: ``TraceError`` if it cannot be read, has no calls, or is mostly wrong.
  public init(
    contentsOf path: String,
    methods: Set<String>? = nil,
    unit: Duration = .milliseconds(1)
  ) throws(TraceError) {
    var reader = TraceReader(named: path, methods: methods, unit: unit)
    let file: FileHandle
    var isFolder = ObjCBool(false)
    if path == "-" {
      file = .standardInput
    } else if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue {
      throw TraceError(name: path, problem: "is a folder: give a file")
    } else if let opened = FileHandle(forReadingAtPath: path) {
      file = opened
    } else {
      throw TraceError(name: path, problem: "cannot be opened: give a file that can be read")
    }
    while true {
      let bytes: Data?
      do {
        bytes = try file.read(upToCount: 256 << 10)
      } catch {
        throw TraceError(name: path, problem: "cannot be read: \(error.localizedDescription)")
      }
      guard let bytes, !bytes.isEmpty else { break }
      try reader.read(bytes)
    }
    self = try reader.finish()
  }

  /// Reads a text.
  ///
  /// - Throws: ``TraceError`` as ``init(contentsOf:methods:unit:)``.
  public init(text: String, named name: String = "trace", methods: Set<String>? = nil) throws(TraceError) {
    var reader = TraceReader(named: name, methods: methods)
    try reader.read(text.utf8)
    self = try reader.finish()
  }
}
