internal import ConformanceMessages
internal import Connect
internal import Foundation
internal import Glibc
internal import SwiftProtobuf

/// The client under test of the Connect conformance suite: reads calls to make from standard input, makes
/// them, and writes what came of each to standard output. `Sources/Connect/Connect.docc/Conformance.md` says how to run the suite.
///
/// Exits with 0 when standard input has ended and all calls are done, with 1 when input or output is broken or a call went
/// wrong after its case was answered, and with 2 for arguments that it does not know. SIGTERM ends it at once.
@main
struct ConnectConformanceClient {
  static func main() async {
    let options: Options
    do {
      options = try Options(arguments: CommandLine.arguments.dropFirst())
    } catch {
      Log.write("\(error)\n\(Options.usage)")
      exit(2)
    }
    guard !options.showsHelp else {
      Log.write(Options.usage)
      exit(0)
    }
    ProcessSettings.apply()
    MessageRegistry.registerAll()
    exit(await self.run(options) ? 0 : 1)
  }

  /// Serves standard input until its end.
  ///
  /// - Returns: Whether all of it was understood, and nothing was found too late to fail its case.
  private static func run(_ options: Options) async -> Bool {
    let transports = TransportPool()
    let runner = CaseRunner(transports: transports, options: options)
    let input = DelimitedReader(descriptor: STDIN_FILENO)
    let output = DelimitedWriter(descriptor: STDOUT_FILENO)
    var isUnderstood = true
    await withTaskGroup(of: Void.self) { group in
      var running = 0
      while true {
        do {
          guard let bytes = try await input.next() else { break }
          let request = try CompatRequest(serializedBytes: bytes)
          if running == options.maximumCalls {
            await group.next()
            running -= 1
          }
          running += 1
          group.addTask { await self.answer(request, runner: runner, output: output) }
        } catch {
          Log.write("standard input is not what a conformance runner writes: \(error)")
          isUnderstood = false
          break
        }
      }
    }
    await transports.shutdown()
    return isUnderstood && runner.lateReports.count == 0
  }

  private static func answer(_ request: CompatRequest, runner: CaseRunner, output: DelimitedWriter) async {
    let response = await runner.response(to: request)
    do {
      let bytes: [UInt8] = try response.serializedBytes()
      try await output.write(bytes)
    } catch {
      // Nobody is left to tell.
      Log.write("standard output is broken: \(error)")
      exit(1)
    }
  }
}
