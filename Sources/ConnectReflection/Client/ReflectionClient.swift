public import Connect
internal import SwiftProtobuf

/// Asks a server for its services by gRPC's server reflection: `grpc.reflection.v1`, or `v1alpha` where the server has
/// no `v1`.
///
/// ```swift
/// let reflection = ReflectionClient(client)
/// let files = try await reflection.files(containing: ["acme.v1.Users"])
/// let get = try files.descriptorPool().method("/acme.v1.Users/Get")
/// var request = DynamicMessage(get.input)
/// try request.set("name", to: "ada")
/// let answer = try await client.unary(get.spec, request).get()
/// ```
///
/// It works with each protocol of the client, also over HTTP/1.1: a stream of requests ends before its answers are
/// read. A stream has one request, or up to 64 with gRPC. All functions throw `ConnectError`: `unimplemented` if the
/// server has neither version, `not_found` for an unknown name, `resource_exhausted` past ``Limits``, `internal` for
/// invalid answers and for an import that the server lacks, and the errors of the calls. An import that only options
/// need may be missing, and the files of `google/protobuf` that a server lacks are supplied.
public struct ReflectionClient: Sendable {
  /// Limits on the data that is accepted from a server.
  public struct Limits: Sendable, Hashable {
    /// The size of all file descriptors together, in bytes.
    public var maximumBytes: Int
    /// The number of files.
    public var maximumFiles: Int
    /// The number of services.
    public var maximumServices: Int

    /// Arguments that are left out have the values of ``defaults``. Past a limit, functions throw `resource_exhausted`.
    public init(
      maximumBytes: Int = 64 * 1024 * 1024,
      maximumFiles: Int = 10_000,
      maximumServices: Int = 10_000
    ) {
      self.maximumBytes = maximumBytes
      self.maximumFiles = maximumFiles
      self.maximumServices = maximumServices
    }

    /// 64 MiB, 10,000 files, 10,000 services. The client's `ProtocolClientConfig.Limits.maximumReceivedMessageSize`
    /// also limits each answer.
    public static var defaults: Limits { Limits() }
  }

  private let exchange: ReflectionExchange
  private let limits: Limits

  /// A client that asks the server of `client`.
  ///
  /// - Parameters:
  ///   - client: Makes the calls, with its host and protocol.
  ///   - options: The options of each call, such as headers for authentication. A timeout applies to each group of
  ///     requests.
  ///   - limits: Limits on the data that is accepted from the server.
  public init(
    _ client: ProtocolClient,
    options: CallOptions = CallOptions(),
    limits: Limits = .defaults
  ) {
    self.exchange = ReflectionExchange(client: client, options: options)
    self.limits = limits
  }

  /// The full names of the services, sorted.
  public func serviceNames() async throws -> [String] {
    var names: Set<String> = []
    try await self.exchange.ask([.with { $0.listServices = "*" }]) { _, answer in
      switch answer.messageResponse {
      case .listServicesResponse(let response):
        guard response.service.count <= self.limits.maximumServices else {
          throw FileCollector.over("more than \(self.limits.maximumServices) services")
        }
        names.formUnion(response.service.map(\.name))
      case .errorResponse(let error):
        throw ConnectError(error, for: "the list of services")
      default:
        throw ConnectError.unusable("no list of services")
      }
    }
    return names.sorted()
  }

  /// The files that declare these symbols, with all their imports. Each file is requested only once.
  ///
  /// - Parameter symbols: Full names of services, messages, enums, extensions, or methods, also as `acme.v1.Users/Get`.
  public func files(containing symbols: [String]) async throws -> ProtoFileSet {
    let names = Set(symbols.map(SymbolIndex.name)).sorted()
    guard !names.isEmpty else {
      throw ConnectError(code: .invalidArgument, message: "no symbols to ask the server for")
    }
    var collector = FileCollector(limits: self.limits)
    let unknown = try await self.addFiles(of: names, to: &collector)
    // Some servers do not know methods, fields and values, but know the types that contain them.
    let outer = unknown.map { String($0.prefix(upTo: $0.lastIndex(of: ".") ?? $0.startIndex)) }
    let stillUnknown = try await self.addFiles(of: outer.filter { !$0.isEmpty }, to: &collector)
    if let name = zip(unknown, outer).first(where: { $1.isEmpty || stillUnknown.contains($1) })?.0 {
      throw await self.unknown(name)
    }
    let files = try await self.withImports(collector)
    for name in names where files.index.place(of: name) == nil { throw files.index.unknown(name) }
    return files
  }

  /// The files of all services, with all their imports. Services that the server lists without having their files are
  /// left out.
  public func allFiles() async throws -> ProtoFileSet {
    let names = try await self.serviceNames()
    var collector = FileCollector(limits: self.limits)
    let unknown = try await self.addFiles(of: names, to: &collector)
    guard unknown.count < names.count else {
      throw ConnectError(
        code: .notFound,
        message: names.isEmpty
          ? "the server's reflection lists no service"
          : "the server's reflection has no file of the services that it lists: \(names.joined(separator: ", "))"
      )
    }
    return try await self.withImports(collector)
  }

  // MARK: Files

  /// - Returns: The names that the server does not know.
  private func addFiles(of names: [String], to collector: inout FileCollector) async throws -> [String] {
    var unknown: [String] = []
    try await self.exchange.ask(names.map { name in .with { $0.fileContainingSymbol = name } }) {
      number,
      answer in
      switch answer.messageResponse {
      case .fileDescriptorResponse(let response):
        guard try !collector.add(response).isEmpty else {
          throw ConnectError.unusable("no file for \(names[number])")
        }
      case .errorResponse(let error) where error.errorCode == Code.notFound.rawValue:
        unknown.append(names[number])
      case .errorResponse(let error):
        throw ConnectError(error, for: names[number])
      default:
        throw ConnectError.unusable("no file for \(names[number])")
      }
    }
    return unknown
  }

  private func withImports(_ collector: FileCollector) async throws -> ProtoFileSet {
    var collector = collector
    while true {
      let missing = try collector.takeMissing()
      guard !missing.isEmpty else { break }
      try await self.addImports(missing[...], to: &collector)
    }
    return try collector.fileSet()
  }

  private func addImports(
    _ missing: ArraySlice<(name: String, importer: String)>,
    to collector: inout FileCollector
  ) async throws {
    var next = missing.startIndex
    do {
      let requests: [ReflectionExchange.Request] = missing.map { file in
        .with { $0.fileByFilename = file.name }
      }
      try await self.exchange.ask(requests) { _, answer in
        try collector.add(answer, for: missing[next])
        next += 1
      }
    } catch let error as ConnectError where FileCollector.isAboutFile(error) {
      // Some servers end the stream at a file that they lack. Those behind it were not answered.
      let rest = missing[next...]
      guard missing.count > 1 else {
        for file in rest { collector.lose(file.name, error.message ?? error.code.name) }
        return
      }
      for number in rest.indices { try await self.addImports(rest[number...number], to: &collector) }
    }
  }

  private func unknown(_ name: String) async -> ConnectError {
    let services = (try? await self.serviceNames()) ?? []
    if let service = services.first(where: { name == $0 || name.hasPrefix("\($0).") }) {
      return ConnectError(
        code: .notFound,
        message: "the server lists \(ProtoText.comment(service)), and its reflection does not know "
          + "\(ProtoText.comment(name)); use a descriptor set or proto files"
      )
    }
    return NearNames.unknown(
      "the server's reflection does not know \(ProtoText.comment(name))",
      near: NearNames.near(name, in: services)
    )
  }
}
